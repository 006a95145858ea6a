#!/bin/sh
# run.sh HEY SECONDS CONNECTIONS THREADS URL: becomes hey. What it prints is chosen by a template (its `-o` takes one, though
# its help names "csv" only): the sums and times that its own summary rounds to 0.1 ms, or divides by the wrong number.
template='{"requests":{{.NumRes}},"total_ns":{{.Total.Nanoseconds}},"sum_s":{{printf "%.9f" .AvgTotal}},
"fastest_s":{{printf "%.9f" .Fastest}},"slowest_s":{{printf "%.9f" .Slowest}},"bytes":{{.SizeTotal}},
"kept":{{len .StatusCodes}},
"percentiles_s":[{{range $i, $at := .LatencyDistribution}}{{if $i}},{{end}}[{{$at.Percentage}},{{printf "%.9f" $at.Latency}}]{{end}}],
"statuses":[{{range $status, $count := .StatusCodeDist}}[{{$status}},{{$count}}],{{end}}[0,0]],
"errors":[{{range $message, $count := .ErrorDist}}[{{printf "%q" $message}},{{$count}}],{{end}}["",0]]}'
exec "$1" -z "$2s" -c "$3" -cpus "$4" -disable-compression -disable-redirects -o "$template" "$5"
