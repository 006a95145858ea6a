"""The same `/` and `/hello` as app.py, by Flask: what a framework adds."""

from flask import Flask

app = Flask(__name__)
TEXT = {"Content-Type": "text/plain"}


@app.get("/")
def root():
    return b"hello world", TEXT


@app.get("/hello")
def hello():
    return b"Hello, World!", TEXT
