module prony/subjects/goroutines

go 1.24.0
