package main

import (
	"context"
	"errors"
	"slices"

	"github.com/schollz/progressbar/v3"

	"github.com/bpfprologue/bpfprologue/debuginfod"
	"github.com/bpfprologue/bpfprologue/internal/screen"
)

// allDebugDirs returns the directories with separate debug information: the user's, then the usual one.
func (s *settings) allDebugDirs() []string { return append(slices.Clip(s.debugDirs), "/usr/lib/debug") }

// useDebuginfod fetches debug information that is not installed, if the environment names servers.
func (s *settings) useDebuginfod(ctx context.Context) error {
	c, err := debuginfod.FromEnvironment()
	if err != nil || c == nil {
		return err
	}
	if screen.OnTerminal() {
		c.Progress = screen.Progress("downloading", progressbar.OptionShowBytes(true))
	}
	s.findDebug = c.Finder(ctx)
	return nil
}

// usePackServers fetches packs that are not installed, if a flag or the environment names servers.
func (s *settings) usePackServers(ctx context.Context) error {
	c, err := debuginfod.PacksFromEnvironment(s.packURLs...)
	if err != nil || c == nil {
		return err
	}
	if screen.OnTerminal() {
		c.Progress = screen.Progress("downloading", progressbar.OptionShowBytes(true))
	}
	s.fetchPack = func(buildID string) (string, error) { return c.Pack(ctx, buildID) }
	return nil
}

// fetch returns the file with a build's debug information from a server. missing is why it is needed.
func (s *settings) fetch(buildID string, missing error) (string, error) {
	if s.findDebug == nil || buildID == "" {
		return "", missing
	}
	path, err := s.findDebug(buildID)
	if err != nil {
		return "", errors.Join(missing, err)
	}
	return path, nil
}
