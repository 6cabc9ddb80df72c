// Package containers finds the control groups (version 2) of containers and pods, by what runtimes keep in files: Docker, containerd,
// CRI-O and Podman.
package containers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/suggest"
)

// Host is a machine: the directory of its files, "/", and that of its control groups.
type Host struct {
	Files  string
	Groups string
}

// This returns this machine.
func This() (Host, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Host{}, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// Mount points are before " - ", kinds after it (proc_pid_mountinfo(5)). A space in a path is \040.
		before, after, _ := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(before); len(fields) > 4 && strings.HasPrefix(after, "cgroup2 ") {
			return Host{"/", strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])}, nil
		}
	}
	if err := lines.Err(); err != nil {
		return Host{}, err
	}
	return Host{}, fmt.Errorf("no control groups of version 2 are mounted: mount -t cgroup2 none /sys/fs/cgroup/unified")
}

// Container is what is known of one.
type Container struct {
	ID        string
	Name      string // that people gave it, or ""
	Namespace string // of the pod, or ""
	Pod       string
	Group     string // the directory of its control group
}

func (c *Container) String() string {
	text := c.ID[:min(len(c.ID), 12)]
	if c.Name != "" {
		text += " " + c.Name
	}
	if c.Pod != "" {
		text += " of pod " + c.Namespace + "/" + c.Pod
	}
	return text
}

// identifier is what runtimes call a container in names of control groups: docker-ID.scope, cri-containerd-ID.scope, crio-ID.scope,
// libpod-ID.scope, or ID alone. Of Podman's and CRI-O's monitors there are others.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:.*[-:])?([0-9a-f]{64})(?:\.scope)?$`) })

// List returns the containers that have a control group, by their IDs.
func (h Host) List() ([]*Container, error) {
	byID := make(map[string]*Container)
	err := filepath.WalkDir(h.Groups, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // a group may end meanwhile
		}
		m := identifier().FindStringSubmatch(d.Name())
		if m == nil || strings.Contains(d.Name(), "conmon") {
			return nil
		}
		if byID[m[1]] == nil {
			byID[m[1]] = &Container{ID: m[1], Group: path}
		}
		return fs.SkipDir // what is below is the container's own
	})
	if err != nil {
		return nil, err
	}
	for _, c := range byID {
		h.describe(c)
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b *Container) int { return strings.Compare(a.ID, b.ID) }), nil
}

// annotations are where runtimes have the names, the first one that there is.
var annotations = struct{ name, namespace, pod []string }{
	name:      []string{"io.kubernetes.cri.container-name", "io.kubernetes.container.name", "nerdctl/name"},
	namespace: []string{"io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"},
	pod:       []string{"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"},
}

// describe finds out how people call a container.
func (h Host) describe(c *Container) {
	from := func(texts map[string]string) {
		first := func(to *string, keys []string) {
			for _, k := range keys {
				if *to == "" {
					*to = texts[k]
				}
			}
		}
		first(&c.Name, annotations.name)
		first(&c.Namespace, annotations.namespace)
		first(&c.Pod, annotations.pod)
	}
	var docker struct {
		Name   string
		Config struct{ Labels map[string]string }
	}
	if h.read(&docker, "var/lib/docker/containers", c.ID, "config.v2.json") {
		from(docker.Config.Labels)
		if c.Pod == "" {
			c.Name = strings.TrimPrefix(docker.Name, "/")
		}
	}
	var spec struct{ Annotations map[string]string } // of the Open Container Initiative's runtime
	for _, dir := range []string{"run/containerd/io.containerd.runtime.v2.task/*", "run/containers/storage/*-containers", "var/lib/containers/storage/*-containers"} {
		for _, name := range []string{"config.json", "userdata/config.json"} {
			if h.read(&spec, dir, c.ID, name) {
				from(spec.Annotations)
			}
		}
	}
	var podman []struct {
		ID    string
		Names []string
	}
	for _, file := range h.files("var/lib/containers/storage/*-containers/containers.json") { // of each driver: overlay, vfs, btrfs
		if c.Name != "" || !readFile(&podman, file) {
			continue
		}
		for _, p := range podman {
			if p.ID == c.ID && len(p.Names) > 0 {
				c.Name = p.Names[0]
			}
		}
	}
}

// files returns the files that a pattern matches.
func (h Host) files(path ...string) []string {
	all, err := filepath.Glob(filepath.Join(append([]string{h.Files}, path...)...))
	if err != nil {
		return nil
	}
	return all
}

// read reads the first file of JSON that a pattern matches.
func (h Host) read(to any, path ...string) bool {
	all := h.files(path...)
	return len(all) > 0 && readFile(to, all[0])
}

func readFile(to any, file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && json.Unmarshal(text, to) == nil
}

// shortestID is how many digits of an ID are enough to mean it.
const shortestID = 4

// Container returns the control group of a container, by its name, its ID or the beginning of that.
func (h Host) Container(name string) (string, error) {
	all, err := h.List()
	if err != nil {
		return "", err
	}
	var found []*Container
	var names []string
	for _, c := range all {
		if c.Name == name || c.ID == name || len(name) >= shortestID && strings.HasPrefix(c.ID, name) {
			found = append(found, c)
		}
		names = append(names, c.ID[:12])
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no container %s has a control group (version 2)%s", name, hint(name, names))
	case 1:
		return found[0].Group, nil
	}
	var texts []string
	for _, c := range found {
		texts = append(texts, c.String())
	}
	return "", fmt.Errorf("%d containers are %s: name one by its ID, or a pod: %s", len(found), name, strings.Join(texts, ", "))
}

// Pod returns the control groups of a pod, by its namespace and name: one that has all of its containers, also those that begin later, if
// there is one.
func (h Host) Pod(name string) ([]string, error) {
	namespace, pod, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || pod == "" {
		return nil, fmt.Errorf("a pod is NAMESPACE/NAME, not %s", name)
	}
	all, err := h.List()
	if err != nil {
		return nil, err
	}
	var groups, names []string
	for _, c := range all {
		if c.Pod == "" {
			continue
		}
		if names = append(names, c.Namespace+"/"+c.Pod); c.Namespace != namespace || c.Pod != pod {
			continue
		}
		group := c.Group
		// kubepods-burstable-podUID.slice, or podUID.
		if parent := filepath.Dir(group); strings.Contains(filepath.Base(parent), "pod") && filepath.Base(parent) != "kubepods" {
			group = parent
		}
		groups = append(groups, group)
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("no pod %s has a control group (version 2)%s", name, hint(name, names))
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// hint returns the nearest names, or all.
func hint(name string, names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if near := suggest.Nearest(name, slices.Values(names), 3); len(near) > 0 {
		return "; nearest: " + strings.Join(near, ", ")
	}
	if len(names) == 0 {
		return "; there are none"
	}
	const most = 12
	return "; there are " + strings.Join(names[:min(len(names), most)], ", ")
}

// Processes returns the processes of a control group and those below it.
func Processes(group string) (pids []int, err error) {
	err = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == group {
				return err
			}
			return nil
		}
		if d.IsDir() || d.Name() != "cgroup.procs" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // it has ended, or is of threads
		}
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 { // 0 is one of another PID namespace
				pids = append(pids, pid)
			}
		}
		return nil
	})
	slices.Sort(pids)
	return pids, err
}
