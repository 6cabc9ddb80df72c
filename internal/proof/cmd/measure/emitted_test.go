package main

import (
	"testing"
)

func TestHistogram(t *testing.T) {
	var h, o histogram
	for range 90 {
		h.add(2)
	}
	for range 9 {
		o.add(5)
	}
	o.add(100)
	h.merge(o)
	if h.count() != 100 || h.sum() != 90*2+9*5+100 || h.mean() != 3.25 {
		t.Errorf("%d numbers, sum %d, mean %v", h.count(), h.sum(), h.mean())
	}
	for _, tt := range []struct {
		share float64
		want  int
	}{{0.5, 2}, {0.9, 2}, {0.91, 5}, {0.99, 5}, {1, 100}} {
		if got := h.quantile(tt.share); got != tt.want {
			t.Errorf("quantile %v is %d, want %d", tt.share, got, tt.want)
		}
	}
	if n := (histogram{}).quantile(0.5); n != 0 {
		t.Errorf("quantile of nothing is %d", n)
	}
}
