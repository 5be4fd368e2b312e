"""A bare aiohttp client in the shape most Python load tools share: one coroutine a stream, reads as they come, events cut
at blank lines, one json.loads and one time stamp an event. Nothing is kept but the stamps, nothing is judged.

  aiohttp_loop.py URL STREAMS
"""

import asyncio
import json
import sys
import time

import aiohttp

REQUEST = {"model": "mock-model-1b", "stream": True, "messages": [{"role": "user", "content": "Write."}]}


async def stream(session, url):
    buffer, stamps = b"", []
    async with session.post(url, json=REQUEST) as answer:
        answer.raise_for_status()
        async for piece in answer.content.iter_any():
            now = time.perf_counter_ns()
            *events, buffer = (buffer + piece).split(b"\n\n")
            for event in events:
                data = event.removeprefix(b"data: ")
                if data == b"[DONE]":
                    continue
                choices = json.loads(data)["choices"]
                if choices and choices[0]["delta"].get("content"):
                    stamps.append(now)
    return len(stamps)


async def main(url, streams):
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        print(sum(await asyncio.gather(*(stream(session, url) for _ in range(streams)))))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
