"""Real stores under test: adapters, promises, installation, reproductions of failures.

`catalogue` lists the rows. A row names an adapter in `python`, `go`, `rust` or `java`. Versions of libraries are pinned
in `python/requirements.txt`, `go/go.mod`, `rust/Cargo.toml` and `java/pom.xml`. `installing` puts the libraries into
the cache directory of the user, which `places` names. No adapter is imported before its row runs.

To add a store, write an adapter in the folder of its language, pin the library in the manifest, and add a row with the
promise that the library documents. If the row is broken, add a program to `reproductions` that shows the failure
without tornpage.
"""
