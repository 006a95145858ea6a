module prony/subjects/net-http-client

go 1.24.0
