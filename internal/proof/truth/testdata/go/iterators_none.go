//go:build !go1.23

package main

func iterators(_, _ int64) {}
