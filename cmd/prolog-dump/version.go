package main

import (
	"runtime/debug"
	"strings"
)

// version says which build of the tool this is: its module's version, and the commit that it was built
// from as far as the Go command has recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	parts := []string{info.Main.Version}
	if parts[0] == "" {
		parts[0] = "(devel)"
	}
	if commit := settings["vcs.revision"]; commit != "" {
		parts = append(parts, "commit "+commit)
		if settings["vcs.modified"] == "true" {
			parts = append(parts, "with changes")
		}
		parts = append(parts, "of "+settings["vcs.time"])
	}
	return strings.Join(append(parts, info.GoVersion+" "+settings["GOARCH"]), ", ")
}
