package images_test

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"cnictl/daemon/install"
	"cnictl/deploy"
	"cnictl/deploy/images"
	"cnictl/plugin/portmap"
	"cnictl/testenv"
	"cnictl/testenv/text/golden"
)

// archive reads an archive built by make images-here, or one for several architectures in the
// directory CNI_TEST_IMAGES. They must include this machine's.
func archive(t *testing.T, name string) []images.Image {
	t.Helper()
	dir := cmp.Or(os.Getenv("CNI_TEST_IMAGES"), os.Getenv("CNI_TEST_BIN"), "../../bin")
	all, err := images.Read(filepath.Join(dir, name+".tar"))
	if os.IsNotExist(err) {
		testenv.Missing(t, "images", err.Error(), "make images-here")
	}
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(i images.Image) bool { return i.Architecture == runtime.GOARCH }) {
		t.Fatalf("%s is not for %s", name, runtime.GOARCH)
	}
	return all
}

// TestArchives: the full contents of the images, for each architecture, and how they start.
func TestArchives(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		starts string
		more   func(*testing.T, images.Image)
	}{
		"aws-vpc-cni":        {`/app ["/app/aws-vpc-cni"] []`, daemon},
		"aws-vpc-cni-init":   {`/init [] ["/init/aws-vpc-cni-init"]`, initial},
		"cni-metrics-helper": {`/app ["/app/cni-metrics-helper" "--cloudwatch=false"] []`, helper},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, i := range archive(t, name) {
				t.Run(i.Architecture, func(t *testing.T) {
					t.Parallel()
					config(t, i, row.starts)
					files(t, i)
					programs(t, i)
					terms(t, i)
					row.more(t, i)
					golden.File(t, "testdata/"+name+".txt", []byte(list(i)))
				})
			}
		})
	}
}

func config(t *testing.T, i images.Image, starts string) {
	t.Helper()
	c := i.Config
	if got := fmt.Sprintf("%s %q %q", c.WorkingDir, c.Entrypoint, c.Cmd); i.OS != "linux" || c.User != "" || got != starts {
		t.Errorf("os %s, user %q, starts with %s, want %s", i.OS, c.User, got, starts)
	}
	for _, label := range []string{"title", "version", "revision", "licenses", "created"} {
		if c.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label %s: %q", label, c.Labels)
		}
	}
}

// list lists an image's files, omitting libraries and license terms.
func list(i images.Image) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		f := i.Files[name]
		switch top, _, _ := strings.Cut(name, "/"); {
		case top == "lib", top == "lib64", strings.HasPrefix(name, "usr/lib/"), strings.HasPrefix(name, "usr/share/doc/"), strings.HasPrefix(name, "licenses/") && strings.Contains(name, "@"):
		default:
			fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("%o %s %s", f.Mode.Perm(), name, f.Link)))
		}
	}
	return b.String()
}

// shells are programs that an intruder in a container would look for.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox", "toybox", "perl", "python3", "env", "xargs"}

func files(t *testing.T, i images.Image) {
	t.Helper()
	for name, f := range i.Files {
		if f.UID != 0 || f.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 || f.Link == "" && f.Mode&0o022 != 0 {
			t.Errorf("%s: owner %d, mode %v", name, f.UID, f.Mode)
		}
		if slices.Contains(shells, path.Base(name)) {
			t.Errorf("%s is a shell, or starts programs", name)
		}
		if f.Link != "" && !strings.HasPrefix(f.Link, "/") {
			target := path.Join(path.Dir(name), f.Link)
			if _, ok := i.Files[target]; !ok && !slices.ContainsFunc(slices.Collect(maps.Keys(i.Files)), func(n string) bool { return strings.HasPrefix(n, target+"/") }) {
				t.Errorf("%s leads to %s, which is not there", name, target)
			}
		}
	}
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// programs: each program is for the image's architecture and finds its libraries. Ours need none,
// because nodes have other libraries.
func programs(t *testing.T, i images.Image) {
	t.Helper()
	var libraries []string
	for name := range i.Files {
		libraries = append(libraries, path.Base(name))
	}
	for name, f := range i.Files {
		e, err := elf.NewFile(bytes.NewReader(f.Data))
		if err != nil {
			continue
		}
		if e.Machine != machines[i.Architecture] {
			t.Errorf("%s is for %v", name, e.Machine)
		}
		needed, err := e.ImportedLibraries()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ours := strings.HasPrefix(name, "app/") || strings.HasPrefix(name, "init/") || path.Base(name) == "cnictl"
		if interpreted := slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }); ours && (interpreted || len(needed) > 0) {
			t.Errorf("%s is not static: %v", name, needed)
		}
		for _, n := range needed {
			if !slices.Contains(libraries, n) {
				t.Errorf("%s needs %s, which is not there", name, n)
			}
		}
	}
}

// bom has the fields of a bill of materials that the tests read.
type bom struct {
	BOMFormat  string
	Components []component
}

type component struct {
	Type, Name, Version, PURL string
	Licenses                  []struct{ Expression string }
}

// terms: the bill of materials names every module linked into a program and every
// Debian package, and the image contains the license terms of each.
func terms(t *testing.T, i images.Image) {
	t.Helper()
	license, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(i.Files["licenses/LICENSE"].Data, license) {
		t.Error("licenses/LICENSE is not ours")
	}
	var b bom
	if err := json.Unmarshal(i.Files["licenses/sbom.cdx.json"].Data, &b); err != nil || b.BOMFormat != "CycloneDX" {
		t.Fatalf("sbom.cdx.json: %v %s", err, b.BOMFormat)
	}
	listed := map[string]bool{}
	for _, c := range b.Components {
		switch {
		case c.Type == "application":
			listed[c.Name] = true
		case strings.HasPrefix(c.PURL, "pkg:deb/"):
			if len(i.Files["usr/share/doc/"+c.Name+"/copyright"].Data) == 0 {
				t.Errorf("no terms of %s", c.PURL)
			}
		default:
			key := c.Name + "@" + c.Version
			listed[key] = true
			if len(i.Files["licenses/"+key+"/LICENSE"].Data) == 0 || len(c.Licenses) != 1 || c.Licenses[0].Expression == "" {
				t.Errorf("no terms of %s, or not on which they are: %v", key, c.Licenses)
			}
		}
	}
	found := 0
	for name, f := range i.Files {
		info, err := buildinfo.Read(bytes.NewReader(f.Data))
		if err != nil {
			continue
		}
		found++
		for _, d := range info.Deps {
			if !listed[d.Path+"@"+d.Version] {
				t.Errorf("the bill of materials lacks %s %s of %s", d.Path, d.Version, name)
			}
		}
		if !listed[name] || !listed["std@"+info.GoVersion] {
			t.Errorf("the bill of materials lacks %s or its standard library %s", name, info.GoVersion)
		}
	}
	if found == 0 {
		t.Error("no program")
	}
	if _, ok := i.Files["usr/sbin/nft"]; ok {
		for _, name := range []string{"iptables", "nftables", "ca-certificates", "libc6"} {
			if !slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == name }) {
				t.Errorf("the bill of materials lacks %s", name)
			}
		}
	}
}

func certificates(t *testing.T, i images.Image) {
	t.Helper()
	if got := string(i.Files["etc/ssl/certs/ca-certificates.crt"].Data); !strings.Contains(got, "BEGIN CERTIFICATE") {
		t.Errorf("certificates: %.100q", got)
	}
}

// helper checks the image of the metrics helper.
func helper(t *testing.T, i images.Image) {
	t.Helper()
	certificates(t, i)
	named(t, i)
}

// daemon checks the image of aws-node.
func daemon(t *testing.T, i images.Image) {
	t.Helper()
	certificates(t, i)
	named(t, i)
	if got := string(i.Files["app/10-aws.conflist"].Data); got != install.Template {
		t.Errorf("the conflist is %q", got)
	}
	if got := string(i.Files["app/eni-max-pods.txt"].Data); !strings.HasPrefix(got, "# ") || !strings.Contains(got, "\nm5.large 29\n") || strings.Count(got, "\n") < 1000 {
		t.Errorf("eni-max-pods.txt is %.200q", got)
	}
	// The program that cnictl --via exec starts is on PATH.
	for _, variable := range i.Config.Env {
		dirs, ok := strings.CutPrefix(variable, "PATH=")
		if ok && !slices.ContainsFunc(strings.Split(dirs, ":"), func(dir string) bool { return i.Files[path.Join(dir[1:], "cnictl")].Mode&0o111 != 0 }) {
			t.Errorf("cnictl is not on %s", variable)
		}
	}
}

// initial checks the image of the init container. What it copies to the node includes the
// license terms, also those of the programs that aws-node copies.
func initial(t *testing.T, i images.Image) {
	t.Helper()
	named(t, i)
	if bytes.Equal(i.Files["init/portmap"].Data, i.Files["init/"+portmap.Reference].Data) {
		t.Error("portmap is the reference plugin")
	}
	got := string(i.Files["init/LICENSE"].Data)
	if !strings.HasPrefix(got, string(i.Files["licenses/LICENSE"].Data)) {
		t.Error("init/LICENSE does not begin with ours")
	}
	for _, linked := range []string{"github.com/containernetworking/plugins ", "github.com/vishvananda/netlink ", "google.golang.org/grpc ", "std go1."} {
		if !strings.Contains(got, linked) {
			t.Errorf("init/LICENSE lacks %s", linked)
		}
	}
}

// named: the image has everything that the manifests refer to: its name, its first program, its
// probes.
func named(t *testing.T, i images.Image) {
	t.Helper()
	all := containers(t)
	n := slices.IndexFunc(all, func(c corev1.Container) bool { return path.Base(c.Image) == path.Base(i.Name) })
	if n < 0 {
		t.Fatalf("no container runs %s", i.Name)
	}
	commands := []string{slices.Concat(i.Config.Entrypoint, i.Config.Cmd)[0]}
	for _, probe := range []*corev1.Probe{all[n].LivenessProbe, all[n].ReadinessProbe} {
		if probe != nil {
			commands = append(commands, probe.Exec.Command[0])
		}
	}
	for _, command := range commands {
		if f, ok := i.Files[command[1:]]; path.Dir(command) != i.Config.WorkingDir || !ok || f.Mode&0o111 == 0 {
			t.Errorf("%s: %s is not a program of its working directory", i.Name, command)
		}
	}
}

// containers returns all containers of the manifests.
func containers(t *testing.T) (out []corev1.Container) {
	t.Helper()
	node, err := deploy.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := deploy.MetricsHelper()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range slices.Concat(node, metrics) {
		template, found, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			continue
		}
		var spec corev1.PodSpec
		if err := k8sruntime.DefaultUnstructuredConverter.FromUnstructured(template, &spec); err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Concat(spec.InitContainers, spec.Containers)...)
	}
	return out
}
