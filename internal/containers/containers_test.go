package containers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/containers"
)

// id makes an ID of a container.
func id(digit string) string { return strings.Repeat(digit, 64) }

// host makes the files of a machine with containers of four runtimes.
func host(t *testing.T) containers.Host {
	t.Helper()
	dir := t.TempDir()
	h := containers.Host{Files: filepath.Join(dir, "files"), Groups: filepath.Join(dir, "groups")}
	for path, text := range map[string]string{
		"groups/system.slice/docker-" + id("1") + ".scope/cgroup.procs":                                                                      "11\n12\n",
		"groups/system.slice/docker-" + id("1") + ".scope/inner/cgroup.procs":                                                                "13\n0\n",
		"groups/libpod_parent/libpod-" + id("7") + "/cgroup.procs":                                                                           "",
		"files/var/lib/containers/storage/vfs-containers/containers.json":                                                                    `[{"id":"` + id("7") + `","names":["till"]}]`,
		"groups/docker/" + id("2") + "/cgroup.procs":                                                                                         "",
		"groups/machine.slice/libpod-" + id("3") + ".scope/cgroup.procs":                                                                     "",
		"groups/machine.slice/libpod-conmon-" + id("3") + ".scope/cgroup.procs":                                                              "",
		"groups/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_cd.slice/cri-containerd-" + id("4") + ".scope/cgroup.procs": "",
		"groups/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_cd.slice/cri-containerd-" + id("5") + ".scope/cgroup.procs": "",
		"groups/kubepods/besteffort/podef-01/crio-" + id("6") + "/cgroup.procs":                                                              "",
		"groups/kubepods/besteffort/podef-01/crio-conmon-" + id("6") + "/cgroup.procs":                                                       "",
		"files/var/lib/docker/containers/" + id("1") + "/config.v2.json":                                                                     `{"Name":"/web","Config":{"Labels":{"a":"b"}}}`,
		"files/var/lib/docker/containers/" + id("2") + "/config.v2.json":                                                                     `{"Name":"/webber"}`,
		"files/var/lib/containers/storage/overlay-containers/containers.json":                                                                `[{"id":"` + id("3") + `","names":["store"]}]`,
		"files/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id("4") + "/config.json": `{"annotations":{"io.kubernetes.cri.container-name":"app",
			"io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.sandbox-name":"cart-0"}}`,
		"files/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id("5") + "/config.json": `{"annotations":{
			"io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.sandbox-name":"cart-0"}}`,
		"files/run/containers/storage/overlay-containers/" + id("6") + "/userdata/config.json": `{"annotations":{"io.kubernetes.container.name":"app",
			"io.kubernetes.pod.namespace":"shop","io.kubernetes.pod.name":"bill"}}`,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// TestFind: containers and pods are found by what people call them.
func TestFind(t *testing.T) {
	h := host(t)
	for name, want := range map[string]string{
		"web":                   "system.slice/docker-" + id("1") + ".scope",
		"1111":                  "system.slice/docker-" + id("1") + ".scope",
		id("2"):                 "docker/" + id("2"),
		"webber":                "docker/" + id("2"),
		"store":                 "machine.slice/libpod-" + id("3") + ".scope",
		"till":                  "libpod_parent/libpod-" + id("7"),
		"3333333":               "machine.slice/libpod-" + id("3") + ".scope",
		"66666":                 "kubepods/besteffort/podef-01/crio-" + id("6"),
		"wen":                   "no container wen has a control group (version 2); nearest: web",
		"111":                   "no container 111 has",
		"app":                   "2 containers are app: name one by its ID, or a pod: 444444444444 app of pod shop/cart-0, 666666666666 app of pod shop/bill",
		"something else at all": "; there are 111111111111, ",
	} {
		got, err := h.Container(name)
		if err != nil {
			got = err.Error()
		}
		if rel, relErr := filepath.Rel(h.Groups, got); err == nil && (relErr != nil || rel != want) || err != nil && !strings.Contains(got, want) {
			t.Errorf("container %s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"shop/cart-0": "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_cd.slice",
		"shop/bill":   "kubepods/besteffort/podef-01",
		"shop/cart-1": "no pod shop/cart-1 has a control group (version 2); nearest: shop/cart-0",
		"cart-0":      "a pod is NAMESPACE/NAME, not cart-0",
	} {
		list, err := h.Pod(name)
		got := ""
		if err != nil {
			got = err.Error()
		} else if len(list) == 1 {
			got, _ = filepath.Rel(h.Groups, list[0])
		}
		if got != want {
			t.Errorf("pod %s: %s, want %s", name, got, want)
		}
	}
	group, err := h.Container("web")
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := containers.Processes(group); err != nil || !slices.Equal(pids, []int{11, 12, 13}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	if _, err := containers.Processes(group + "x"); err == nil {
		t.Error("a group that is not there has processes")
	}
}
