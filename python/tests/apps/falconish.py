"""Hello in Falcon."""

import falcon


class Hello:
    """A resource."""

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        response.text = f"hello {request.get_param('name', default='world')}"
        response.content_type = falcon.MEDIA_TEXT

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        response.media = {"twice": 2 * request.get_media()["value"]}


app = falcon.App()
app.add_route("/", Hello())
