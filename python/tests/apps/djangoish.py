"""An application in Django, in one file."""

import io
from collections.abc import Iterator

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.urls import path

settings.configure(
    DEBUG=False,
    SECRET_KEY="for tests only",  # noqa: S106
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
    ],
    FILE_UPLOAD_MAX_MEMORY_SIZE=1000,
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "loggers": {"django": {"handlers": ["console"]}},
    },
)
django.setup()


def hello(_: HttpRequest) -> HttpResponse:
    return HttpResponse("hello world")


def form(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"method": request.method, **request.POST.dict()})


def upload(request: HttpRequest) -> HttpResponse:
    sent = request.FILES["data"]
    return HttpResponse(f"{sent.name} {sum(len(chunk) for chunk in sent.chunks())}")


def body(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.body)


def login(request: HttpRequest, name: str) -> HttpResponse:
    request.session["name"] = name
    return HttpResponseRedirect("/me")


def me(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.session.get("name", "nobody"))


def stream(_: HttpRequest, count: int) -> StreamingHttpResponse:
    def blocks() -> Iterator[bytes]:
        for number in range(count):
            yield b"%d\n" % number

    return StreamingHttpResponse(blocks())


def file(_: HttpRequest) -> FileResponse:
    return FileResponse(open(__file__, "rb"))


def memory(_: HttpRequest) -> FileResponse:
    return FileResponse(io.BytesIO(b"in memory"), filename="a.txt")


def fail(_: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError("in a view")


urlpatterns = [
    path("", hello),
    path("form", form),
    path("upload", upload),
    path("body", body),
    path("login/<name>", login),
    path("me", me),
    path("stream/<int:count>", stream),
    path("file", file),
    path("memory", memory),
    path("fail", fail),
]

app = get_wsgi_application()
