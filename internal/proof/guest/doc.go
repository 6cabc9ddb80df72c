// Package guest boots a kernel in an emulated machine, where tests attach this project's
// probes, make system calls with chosen values, and compare what was fetched.
//
// The test's side makes plans from the image with debug information, which stays
// outside. Inside, the only program is package init: it gets the plans' instructions
// and addresses with the initramfs, attaches them with packages tracer and instances,
// and reports on a serial line of its own.
//
//	for _, k := range guest.FindKernels(t, guest.AMD64) {
//		report, err := k.Boot(ctx, &guest.Task{Plans: plans, Calls: calls})
//	}
//
// A task may also have files and commands, which the guest runs. An architecture is
// described by data, a Machine.
package guest
