package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/probe"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// manifest has the fields of Kubernetes' objects that the examples use: a misspelled one is an error.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Data       map[string]string
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		CompletionMode       string `yaml:"completionMode"`
		Completions          int
		Parallelism          int
		BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
		Template             struct {
			Metadata metadata
			Spec     struct {
				RestartPolicy                string `yaml:"restartPolicy"`
				AutomountServiceAccountToken *bool  `yaml:"automountServiceAccountToken"`
				Containers                   []container
				Volumes                      []volume
			}
		}
	}
}

type volume struct {
	Name      string
	ConfigMap struct{ Name string } `yaml:"configMap"`
	Claim     struct {
		Name string `yaml:"claimName"`
	} `yaml:"persistentVolumeClaim"`
	EmptyDir struct {
		SizeLimit string `yaml:"sizeLimit"`
	} `yaml:"emptyDir"`
}

type metadata struct {
	Name   string
	Labels map[string]string
}

type container struct {
	Name, Image     string
	Command, Args   []string
	Env             []struct{ Name, Value string }
	SecurityContext struct {
		RunAsUser                *int  `yaml:"runAsUser"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop, Add []string }
	} `yaml:"securityContext"`
	Resources    struct{ Requests, Limits map[string]string }
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

func manifests(t *testing.T, name string) (out []manifest) {
	t.Helper()
	f, err := os.Open(filepath.Join("kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	for {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, m)
	}
}

// TestManifests: what the manifests name is there, and nothing is allowed that is not needed.
func TestManifests(t *testing.T) {
	for name, kinds := range map[string][]string{"daemonset.yaml": {"apps/v1 DaemonSet"}, "job.yaml": {"v1 ConfigMap", "batch/v1 Job"}} {
		var got []string
		for _, m := range manifests(t, name) {
			got = append(got, m.APIVersion+" "+m.Kind)
			pod := &m.Spec.Template.Spec
			for _, c := range pod.Containers {
				if _, tag, ok := strings.Cut(c.Image, ":"); !ok || tag == "latest" {
					t.Errorf("%s: the image %s has no version", name, c.Image)
				}
				if e := c.SecurityContext.AllowPrivilegeEscalation; e == nil || *e {
					t.Errorf("%s: %s may get more privileges", name, c.Name)
				}
				if c.Resources.Limits["memory"] == "" {
					t.Errorf("%s: %s has no limit of memory", name, c.Name)
				}
				for _, v := range c.VolumeMounts {
					if !slices.ContainsFunc(pod.Volumes, func(x volume) bool {
						return x.Name == v.Name
					}) {
						t.Errorf("%s: no volume %s", name, v.Name)
					}
				}
			}
			if pod.Containers != nil && (pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken) {
				t.Errorf("%s: the pod has a token of the cluster", name)
			}
		}
		if !slices.Equal(got, kinds) {
			t.Errorf("%s: %q, want %q", name, got, kinds)
		}
	}
	set := manifests(t, "daemonset.yaml")[0]
	if l := set.Spec.Selector.MatchLabels["app"]; l == "" || set.Spec.Template.Metadata.Labels["app"] != l {
		t.Error("the set does not select its pods")
	}
	args := set.Spec.Template.Spec.Containers[0].Args
	if _, err := probe.Parse(args[len(args)-1]); err != nil {
		t.Error(err)
	}
	job := manifests(t, "job.yaml")
	if n := len(strings.Fields(job[0].Data["list"])); n != job[1].Spec.Completions {
		t.Errorf("%d completions for %d kernels", job[1].Spec.Completions, n)
	}
}

// TestCapabilities: with the capabilities of the DaemonSet the tool traces, by root in a directory as an emptyDir is, from a server of packs;
// and without one of them it does not, or does not learn where the kernel is.
func TestCapabilities(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	setpriv := testenv.Tool(t, "setpriv")
	strip := testenv.Tool(t, "strip")
	if os.Geteuid() != 0 {
		testenv.Missing(t, "only root can give up capabilities")
	}
	dir := t.TempDir()
	tool := filepath.Join(dir, "prolog-dump")
	program, err := fixtures.WriteTo(dir, "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(dir, "cache")
	testenv.Build(t, tool, nil, "../cmd/prolog-dump")
	for _, step := range [][]string{
		{"chmod", "755", program}, {tool, "pack", "write", "--no-cache", "--out-dir", filepath.Join(dir, "packs"), program},
		{strip, program}, {"mkdir", "-m", "777", cache},
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", step, err, out)
		}
	}
	url := serveFiles(t, filepath.Join(dir, "packs"))
	x := manifests(t, "daemonset.yaml")[0].Spec.Template.Spec.Containers[0]
	if x.SecurityContext.RunAsUser == nil || *x.SecurityContext.RunAsUser != 0 || !slices.Equal(x.SecurityContext.Capabilities.Drop, []string{"ALL"}) {
		t.Error("capabilities are effective for root, and there are no others")
	}
	var sub string
	for _, e := range x.Env {
		if e.Name == "DEBUGINFOD_CACHE_PATH" {
			sub = strings.TrimPrefix(e.Value, x.VolumeMounts[0].MountPath)
		}
	}
	with := func(capabilities []string, words ...string) (string, error) {
		set := "-all"
		for _, c := range capabilities {
			set += ",+" + strings.ToLower(c)
		}
		cmd := exec.Command(setpriv, append([]string{"--bounding-set=" + set, "--inh-caps=-all", "--no-new-privs"}, words...)...)
		cmd.Env = []string{"PACK_URLS=" + url, "DEBUGINFOD_CACHE_PATH=" + cache + sub}
		cmd.Stdin = strings.NewReader("x\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	all := x.SecurityContext.Capabilities.Add
	trace := []string{tool, "-x", program, "trace", "--no-cache", "mix key", "--", program}
	if out, err := with(all, trace...); err != nil || !strings.Contains(out, "key=41") {
		t.Errorf("with %v: %v\n%s", all, err, out)
	}
	addresses := func(capabilities []string) bool {
		out, err := with(capabilities, "head", "-n", "1", "/proc/kallsyms")
		return err == nil && !strings.HasPrefix(out, "0000000000000000")
	}
	if !addresses(all) {
		t.Errorf("with %v, /proc/kallsyms has no addresses", all)
	}
	for i, c := range all {
		less := slices.Delete(slices.Clone(all), i, i+1)
		if _, err := with(less, trace...); err == nil && addresses(less) {
			t.Errorf("%s is not needed", c)
		}
	}
}

// serveFiles hands out a directory.
func serveFiles(t *testing.T, dir string) string {
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(s.Close)
	return s.URL
}

// instruction is a line of a Dockerfile with those that continue it.
var instruction = regexp.MustCompile(`(?m)^[ \t]*([A-Z]+)[ \t]+((?:.*\\\n)*.*)$`)

// TestDockerfile: the rules that a linter has, and if a builder is there, the images.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("kubernetes/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var stages, used []string
	rest := instruction.ReplaceAllString(string(text), "")
	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			t.Errorf("no instruction: %s", line)
		}
	}
	for _, m := range instruction.FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(m[2])
		switch m[1] {
		case "FROM":
			if _, tag, _ := strings.Cut(words[0], ":"); words[0] != "scratch" && (tag == "" || tag == "latest") {
				t.Errorf("%s has no version", words[0])
			}
			if len(words) != 3 || words[1] != "AS" {
				t.Errorf("a stage without a name: %s", m[0])
			}
			stages = append(stages, words[2])
		case "COPY":
			if from, ok := strings.CutPrefix(words[0], "--from="); ok {
				used = append(used, from)
				words = words[1:]
			}
			for _, w := range words[:len(words)-1] {
				if _, err := os.Stat(filepath.Join("..", w)); err != nil && !filepath.IsAbs(w) {
					t.Error(err)
				}
			}
		case "RUN":
			if strings.Contains(m[2], "apt-get install") && (!strings.Contains(m[2], "-y") || !strings.Contains(m[2], "--no-install-recommends") || !strings.Contains(m[2], "rm -rf /var/lib/apt/lists/*")) {
				t.Errorf("apt-get asks, or leaves lists: %s", m[0])
			}
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(m[2]), new([]string)); err != nil {
				t.Errorf("%s: %v", m[0], err)
			}
		case "WORKDIR":
			if !filepath.IsAbs(m[2]) {
				t.Errorf("%s is not absolute", m[2])
			}
		default:
			t.Errorf("an instruction that this test does not know: %s", m[0])
		}
	}
	for _, u := range used {
		if !slices.Contains(stages, u) {
			t.Errorf("no stage %s", u)
		}
	}
	if exec.Command("docker", "info").Run() != nil {
		t.Log("no builder: the images are not built")
		return
	}
	for _, target := range stages[1:] {
		if out, err := exec.Command("docker", "build", "-q", "-f", "kubernetes/Dockerfile", "--target", target, "..").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", target, err, out)
		}
	}
}

// TestPacksMakefile: a kernel's package becomes a pack, once; another one is an error, and leaves nothing.
func TestPacksMakefile(t *testing.T) {
	testenv.Tool(t, "make")
	dir := t.TempDir()
	image, err := fixtures.WriteTo(dir, "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	for _, path := range []string{bin, filepath.Join(dir, "out"), filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Build(t, filepath.Join(bin, "prolog-dump"), nil, "../cmd/prolog-dump")
	// What apt and dpkg do, of a package that has this image.
	for name, text := range map[string]string{
		"apt-get":  `[ "$3" = linux-image-6.1.0-56-amd64-dbg ] && touch x.deb`,
		"dpkg-deb": `mkdir -p root/boot && cp "$IMAGE" root/boot/vmlinux-6.1.0-56-amd64 && tar -c -C root ./boot && rm -r root`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(kernel string) (string, error) {
		cmd := exec.Command("make", "-f", "kubernetes/packs.mk", "OUT="+filepath.Join(dir, "out"), "KERNELS="+kernel)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "IMAGE="+image, "TMPDIR="+filepath.Join(dir, "tmp"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("6.1.0-56-amd64"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	index := filepath.Join(dir, "out", "index.jsonl")
	d, err := os.ReadFile(index)
	if err != nil || bytes.Count(d, []byte("\n")) != 1 {
		t.Errorf("%v, %s", err, d)
	}
	if out, err := run("6.1.0-99-amd64"); err == nil || !strings.Contains(out, "linux-image-6.1.0-99-amd64-dbg has no vmlinux") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("%v, left %v", err, left)
	}
	// The image does not say its release: as if it did.
	if err := os.WriteFile(index, bytes.Replace(d, []byte("}\n"), []byte(`,"release":"6.1.0-56-amd64"}`+"\n"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run("6.1.0-56-amd64"); err != nil || !strings.Contains(out, "its pack is there") {
		t.Errorf("%v\n%s", err, out)
	}
}
