module prony/subjects/nethttp

go 1.22
