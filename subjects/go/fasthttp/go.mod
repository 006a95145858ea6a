module prony/subjects/fasthttp

go 1.24.0

require (
	github.com/goccy/go-json v0.12.0
	github.com/valyala/fasthttp v1.71.0
)

require (
	github.com/andybalholm/brotli v1.2.1 // indirect
	github.com/klauspost/compress v1.18.6 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
)
