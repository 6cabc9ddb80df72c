//go:build race

package raced

// On is set under the race detector, which makes some tests ten times slower.
const On = true
