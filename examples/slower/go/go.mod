module slower

go 1.19
