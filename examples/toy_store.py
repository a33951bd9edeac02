"""A message store in sixty lines, with a bug that docs/test-your-store.md finds."""

import base64
import json
import os
import struct
import sys
import zlib

HEAD = struct.Struct(">II")  # length and checksum of the message that follows


class ToyStore:
    name = "toy"
    promises = {"durable": "put", "recovered": True}  # safe once put was answered, or once found after a crash

    def __init__(self, directory):
        path = os.path.join(directory, "messages")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.end, self.bodies, self.queues = 0, {}, {}
        data = os.pread(self.file, os.fstat(self.file).st_size, 0)
        while message := self.message_at(data, self.end):
            self.remember(message)
        os.ftruncate(self.file, self.end)  # bytes after the last whole message were never acknowledged
        os.fsync(self.file)

    def message_at(self, data, start):
        if start + HEAD.size > len(data):
            return None
        length, checksum = HEAD.unpack_from(data, start)
        message = data[start + HEAD.size : start + HEAD.size + length]
        return message if message and zlib.crc32(message) == checksum else None

    def remember(self, message):
        topic, queue, body = json.loads(message)
        offset, numbers = self.end, self.queues.setdefault((topic, queue), [])
        numbers.append(offset)
        self.bodies[offset] = base64.b64decode(body)
        self.end += HEAD.size + len(message)
        return offset, len(numbers) - 1

    def put(self, topic, queue, body, keys):
        message = json.dumps([topic, queue, base64.b64encode(body).decode()]).encode()
        os.pwrite(self.file, HEAD.pack(len(message), zlib.crc32(message)) + message, self.end)
        os.fsync(self.file)
        return self.remember(message)

    def get(self, offset):
        return self.bodies.get(offset)

    def read(self, topic, queue, number):
        numbers = self.queues.get((topic, queue), [])
        return self.bodies[numbers[number]] if number < len(numbers) else None

    def flush(self):
        os.fsync(self.file)

    def close(self):
        os.close(self.file)


def answer(store, ask):
    """Return the answer to one request of the JSON lines protocol."""

    def coded(body):
        return None if body is None else base64.b64encode(body).decode()

    match ask["do"]:
        case "hello":
            return {"tornpage": 1, "name": store.name, "promises": store.promises}
        case "put":
            offset, number = store.put(ask["topic"], ask["queue"], base64.b64decode(ask["body"]), ask["keys"])
            return {"offset": offset, "number": number}
        case "get":
            return {"body": coded(store.get(ask["offset"]))}
        case "read":
            return {"body": coded(store.read(ask["topic"], ask["queue"], ask["number"]))}
        case "flush":
            store.flush()
        case "close":
            store.close()
    return {}


if __name__ == "__main__":
    toy = ToyStore(sys.argv[sys.argv.index("--dir") + 1])
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(answer(toy, request)), flush=True)
        if request["do"] == "close":
            break
