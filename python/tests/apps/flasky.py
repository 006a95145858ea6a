"""An application in Flask with what applications have."""

from collections.abc import Iterator

from flask import Flask, Response, redirect, request, session, stream_with_context, url_for
from werkzeug.wrappers import Response as Redirect

app = Flask(__name__)
app.secret_key = "for tests only"  # noqa: S105


@app.get("/")
def hello() -> str:
    return "hello world"


@app.get("/item/<int:number>")
def item(number: int) -> dict[str, object]:
    return {"number": number, "tags": request.args.getlist("tag")}


@app.post("/form")
def form() -> dict[str, str]:
    return dict(request.form.items())


@app.post("/upload")
def upload() -> str:
    sent = request.files["data"]
    return f"{sent.filename} {len(sent.read())}"


@app.post("/json")
def double() -> dict[str, int]:
    return {"twice": 2 * int(request.get_json()["value"])}


@app.get("/login/<name>")
def login(name: str) -> Redirect:
    session["name"] = name
    return redirect(url_for("me"))


@app.get("/me")
def me() -> str:
    return str(session.get("name", "nobody"))


@app.get("/stream/<int:count>")
def stream(count: int) -> Response:
    def blocks() -> Iterator[str]:
        for number in range(count):
            yield f"{request.path} {number}\n".ljust(65536)

    return Response(stream_with_context(blocks()), mimetype="text/plain")


@app.get("/fail")
def fail() -> str:
    raise ZeroDivisionError("in a view")
