"""A click counter on FastAPI: GET / answers the count, POST / adds 0 to 500 to it. How it is served, and what keeps the
count, is in gunicorn.conf.py."""

import re

from fastapi import FastAPI, HTTPException, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import PlainTextResponse

from counting import count

CLICKS = re.compile(rb"[0-9]{1,3}")
CLICKS_MAX = 500
# A body above this is refused before the rest of it is read.
BODY_BYTES_MAX = 1024

# Without the pages of documentation: a production service does not publish them.
app = FastAPI(openapi_url=None)
app.add_middleware(
    CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"], allow_headers=["*"], max_age=3600
)


async def small_body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise HTTPException(413)
    return body


@app.head("/")
@app.get("/")
async def current() -> PlainTextResponse:
    return PlainTextResponse(str(count.get()))


@app.post("/")
async def add(request: Request) -> PlainTextResponse:
    body = await small_body(request)
    # Matched first: `int` alone would take `+5`, ` 5`, `1_0` and the digits of every script.
    if not CLICKS.fullmatch(body) or int(body) > CLICKS_MAX:
        raise HTTPException(400, "expected a number from 0 to 500")
    return PlainTextResponse(str(count.add(int(body))))
