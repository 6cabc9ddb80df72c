package origin

import (
	"context"
	"errors"
	"slices"

	"github.com/schollz/progressbar/v3"

	"github.com/bpfprologue/bpfprologue/debuginfod"
	"github.com/bpfprologue/bpfprologue/internal/screen"
)

// allDebugDirs returns the directories with separate debug information: the user's, then the usual one.
func (f *Finder) allDebugDirs() []string { return append(slices.Clip(f.DebugDirs), "/usr/lib/debug") }

// UseDebuginfod fetches debug information that is not installed, if the environment names servers.
func (f *Finder) UseDebuginfod(ctx context.Context) error {
	c, err := debuginfod.FromEnvironment()
	if err != nil || c == nil {
		return err
	}
	if screen.OnTerminal() {
		c.Progress = screen.Progress("downloading", progressbar.OptionShowBytes(true))
	}
	f.findDebug = c.Finder(ctx)
	return nil
}

// UsePackServers fetches packs that are not installed, if a flag or the environment names servers.
func (f *Finder) UsePackServers(ctx context.Context) error {
	c, err := debuginfod.PacksFromEnvironment(f.PackURLs...)
	if err != nil || c == nil {
		return err
	}
	if screen.OnTerminal() {
		c.Progress = screen.Progress("downloading", progressbar.OptionShowBytes(true))
	}
	f.fetchPack = func(buildID string) (string, error) { return c.Pack(ctx, buildID) }
	return nil
}

// fetch returns the file with a build's debug information from a server. missing is why it is needed.
func (f *Finder) fetch(buildID string, missing error) (string, error) {
	if f.findDebug == nil || buildID == "" {
		return "", missing
	}
	path, err := f.findDebug(buildID)
	if err != nil {
		return "", errors.Join(missing, err)
	}
	return path, nil
}
