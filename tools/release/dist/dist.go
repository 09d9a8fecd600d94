// Package dist makes the files from which people install cnictl: archives, Debian and RPM
// packages, and krew archives with their manifest. The same inputs produce the same bytes.
package dist

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cnictl/tools/release/files"
	"cnictl/tools/release/software"
)

// Release describes a release.
type Release struct {
	Version   string
	Source    string    // URL of the project, below which releases are published; "" if none
	Revision  string    // commit that everything was built from; "" if there are changes to it
	Builder   string    // URI of who built
	Time      time.Time // of the revision
	License   string    // text of the project's own licence
	Inventory func() *software.Inventory

	Programs    string // directory with OS_ARCH/cnictl for each platform
	Man         string // directory of manual pages
	Completions string // directory of shell completions: bash, zsh, fish, powershell
	Kubectl     string // the program that kubectl runs for completions
	Krew        string // krew's manifest, to fill in; requires Source
	Charts      string // directory of Helm chart packages; "" if none
	Images      bool   // the output directory has image archives, which are part of the release
}

// Platforms are the platforms of the archives; packages exist for Linux only.
var Platforms = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"}

// Build writes everything below the directory out, and returns the names of the files there.
func (r Release) Build(out string) ([]string, error) {
	if r.Source != "" && !strings.HasPrefix(r.Source, "https://") {
		return nil, fmt.Errorf("source %q is not a URL such as https://host/project; set SOURCE", r.Source)
	}
	shared, err := r.shared()
	if err != nil {
		return nil, err
	}
	made := map[string][]byte{}
	sums := map[string]string{}
	for _, platform := range Platforms {
		p, err := r.read(platform, shared)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", platform, err)
		}
		if err := p.pack(made); err != nil {
			return nil, fmt.Errorf("%s: %w", platform, err)
		}
		sums[platform] = digest(made["krew/aws-cni_"+platform+".tar.gz"])
	}
	if r.Source != "" { // the manifest has URLs
		if made["krew/aws-cni.yaml"], err = r.manifest(sums); err != nil {
			return nil, err
		}
	}
	if r.Charts != "" {
		charts, err := files.Tree(r.Charts)
		if err != nil {
			return nil, err
		}
		for _, chart := range charts {
			made["chart/"+chart.Name] = chart.Data
		}
	}
	if err := r.list(out, made); err != nil {
		return nil, err
	}
	for name, data := range made {
		file := filepath.Join(out, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644))
		if err != nil {
			return nil, err
		}
	}
	return sorted(made), nil
}

// list adds the files that say what the others are.
func (r Release) list(out string, made map[string][]byte) error {
	all := maps.Clone(made)
	if r.Images && !r.Proven() {
		return errors.New("a release needs the commit that it was built from, and a URL of the project: commit all files, set SOURCE")
	}
	if r.Images {
		archives, err := filepath.Glob(filepath.Join(out, "*.tar"))
		if err != nil {
			return err
		}
		if len(archives) == 0 {
			return fmt.Errorf("%s has no image archive; run: make images", out)
		}
		for _, file := range archives {
			if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
				return err
			}
		}
	}
	if r.Proven() {
		compiler, err := goOf(filepath.Join(r.Programs, Platforms[0], "cnictl"))
		if err != nil {
			return err
		}
		if made[ProvenanceFile], err = r.provenance(all, compiler); err != nil {
			return err
		}
		all[ProvenanceFile] = made[ProvenanceFile]
	}
	var sums strings.Builder
	for _, name := range sorted(all) {
		fmt.Fprintf(&sums, "%s  %s\n", digest(all[name]), name)
	}
	made["SHA256SUMS"] = []byte(sums.String())
	return nil
}

// Proven reports whether there is a statement of where the release comes from.
func (r Release) Proven() bool { return r.Source != "" && r.Revision != "" }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// shared returns the files that are the same on all platforms, by their path in archives.
func (r Release) shared() ([]files.File, error) {
	var out []files.File
	pages, err := files.Tree(r.Man)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		page.Name = "man/man1/" + page.Name
		out = append(out, page)
	}
	for shell, name := range map[string]string{"bash": "cnictl", "zsh": "_cnictl", "fish": "cnictl.fish", "powershell": "cnictl.ps1"} {
		f, err := files.Read(filepath.Join(r.Completions, shell), "completions/"+shell+"/"+name)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	asked, err := files.Read(r.Kubectl, "kubectl_complete-cni")
	return append(out, asked, files.File{Name: "kubectl-cni", Mode: 0o777, Link: "cnictl"}, files.File{Name: "LICENSE", Mode: 0o644, Data: []byte(r.License)}), err
}

// platform is one platform's build.
type platform struct {
	Release
	name    string // linux_amd64
	program []byte
	terms   []byte // licence terms of everything in the program
	bom     []byte
	shared  []files.File
}

func (r Release) read(name string, shared []files.File) (platform, error) {
	p := platform{Release: r, name: name, shared: shared}
	file := filepath.Join(r.Programs, name, "cnictl")
	inventory := r.Inventory()
	if err := inventory.Add("cnictl", file); err != nil {
		return p, err
	}
	var err error
	if p.program, err = os.ReadFile(file); err != nil {
		return p, err
	}
	p.terms = []byte(inventory.Text(r.License))
	p.bom, err = inventory.SBOM(software.Subject{Kind: "application", Name: "cnictl", Version: r.Version, License: software.Own, Time: r.Time})
	return p, err
}

// pack adds the platform's files to made.
func (p platform) pack(made map[string][]byte) error {
	whole := append(slices.Clone(p.shared),
		files.File{Name: "cnictl", Mode: 0o755, Data: p.program},
		files.File{Name: "THIRD-PARTY-LICENSES", Mode: 0o644, Data: p.terms},
		files.File{Name: "sbom.cdx.json", Mode: 0o644, Data: p.bom})
	name := "cnictl_" + p.Version + "_" + p.name
	for i := range whole {
		whole[i].Name = name + "/" + whole[i].Name
	}
	var err error
	if made[name+".tar.gz"], err = p.archive(whole); err != nil {
		return err
	}
	made[name+".cdx.json"] = p.bom
	// krew installs only a link to the program; completions need more (docs/cli.md).
	made["krew/aws-cni_"+p.name+".tar.gz"], err = p.archive([]files.File{
		{Name: "LICENSE", Mode: 0o644, Data: p.terms}, {Name: "kubectl-aws_cni", Mode: 0o755, Data: p.program},
	})
	if system, _, _ := strings.Cut(p.name, "_"); err != nil || system != "linux" {
		return err
	}
	return p.packages(made)
}

func (p platform) archive(list []files.File) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := files.Tar(zip, list, p.Time); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var comment = regexp.MustCompile(`(?m)^#.*\n`)

// manifest fills in krew's manifest.
func (r Release) manifest(sums map[string]string) ([]byte, error) {
	template, err := os.ReadFile(r.Krew)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for platform, sum := range sums {
		pairs = append(pairs, "SHA256_"+platform, sum)
	}
	fill := strings.NewReplacer(append(pairs, "VERSION", r.Version, "BASE", strings.TrimSuffix(r.Source, "/"))...)
	return []byte(fill.Replace(comment.ReplaceAllString(string(template), ""))), nil
}
