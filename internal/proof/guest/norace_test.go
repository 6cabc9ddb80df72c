//go:build !race

package guest_test

const race = false
