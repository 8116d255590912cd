"""Clients that are no SDK, each with its own HTTP stack: a plain answer, a stream and a lost reply."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import httpx2
import pytest

from n00dles_testing import DropsMidStream, LostReply, RateLimited
from n00dles_testing.llm.scripted_server import ScriptedServer

BODY = {"model": "m", "messages": [{"role": "user", "content": "Go on."}]}
HEADERS = {"Authorization": "Bearer k"}


def scripted(llm: ScriptedServer) -> str:
    llm.reply(None, "One two three.", times=2)
    llm.fail(None, RateLimited(retry_after=0.5))
    llm.fail(None, LostReply())
    llm.fail(None, DropsMidStream(after=2))
    return f"{llm.environment['OPENAI_BASE_URL']}/chat/completions"


def text_of(events: str) -> str:
    chunks = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: {")]
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


@pytest.mark.parametrize("library", [httpx, httpx2], ids=lambda library: library.__name__)
def test_httpx_and_httpx2(llm: ScriptedServer, library: Any) -> None:
    url = scripted(llm)

    with library.Client(headers=HEADERS) as client:
        whole = client.post(url, json=BODY).json()["choices"][0]["message"]["content"]
        streamed = text_of(client.post(url, json={**BODY, "stream": True}).text)
        limited = client.post(url, json=BODY)
        with pytest.raises(library.RemoteProtocolError, match="without sending a response"):
            client.post(url, json=BODY)
        with pytest.raises(library.RemoteProtocolError, match="incomplete chunked read"):
            client.post(url, json={**BODY, "stream": True})

    assert (whole, streamed) == ("One two three.", "One two three.")
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "0.5")


def test_aiohttp(llm: ScriptedServer) -> None:
    aiohttp = pytest.importorskip("aiohttp")
    url = scripted(llm)

    async def calls() -> tuple[str, str, int, str]:
        async with aiohttp.ClientSession(headers=HEADERS) as client:
            async with client.post(url, json=BODY) as response:
                whole = (await response.json())["choices"][0]["message"]["content"]
            async with client.post(url, json={**BODY, "stream": True}) as response:
                streamed = text_of(await response.text())
            async with client.post(url, json=BODY) as limited:
                await limited.read()
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await client.post(url, json=BODY)
            with pytest.raises(aiohttp.ClientPayloadError):
                async with client.post(url, json={**BODY, "stream": True}) as response:
                    await response.read()
            return whole, streamed, limited.status, limited.headers["retry-after"]

    assert asyncio.run(calls()) == ("One two three.", "One two three.", 429, "0.5")
