#!/bin/sh
# Prints three lines at once, as a server does that waits for something, and never listens.

echo "never-ready: reading the configuration"
echo "never-ready: connecting to the database"
echo "never-ready: the database does not answer, waiting"
exec sleep 3600
