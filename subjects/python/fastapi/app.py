"""The ping and hello endpoints on FastAPI."""

from typing import Annotated

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

SEQUENCE_MAX = 2**53 - 1

# Without the pages of documentation: a production service does not publish them.
app = FastAPI(openapi_url=None)


class Ping(BaseModel):
    # Strict: a sequence that is a string is wrong, not a number in disguise.
    sequence: Annotated[int, Field(strict=True, ge=0, le=SEQUENCE_MAX)]


@app.post("/ping")
async def ping(message: Ping) -> Ping:
    return message


@app.head("/hello")
@app.get("/hello")
async def hello() -> PlainTextResponse:
    return PlainTextResponse("Hello, World!")


@app.exception_handler(RequestValidationError)
async def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
    """Answers 400 where FastAPI would say 422."""
    return JSONResponse({"detail": "expected an object with a sequence"}, status_code=400)
