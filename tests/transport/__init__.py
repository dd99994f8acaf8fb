"""Tests of hotshot.transport: generators of problems x one checker of solutions."""
