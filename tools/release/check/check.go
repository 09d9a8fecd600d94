// Package check looks for what a release must not have: known vulnerabilities, an outdated Go,
// sources that are in no commit. Other builds go on without these checks, and say so.
package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/version"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// Build is what is checked, in the root of a checkout.
type Build struct {
	Go          string   // the program
	Modules     []string // go.mod of each module of which programs are shipped
	Govulncheck string   // the program
	Database    string   // URL of the database of vulnerabilities
	Probe       string   // a small Go program, to learn whether the database can be reached
	Scans       []Scan   // of what is shipped
}

// Scan is one run of govulncheck.
type Scan struct {
	Args []string
	Env  []string // in addition to this process's
}

// Release is what a release has in addition.
type Release struct {
	Source string // URL of the project
	Out    string // directory to write to
}

// remark is what only a release is refused for.
type remark string

func (r remark) Error() string { return string(r) }

// step is a check with the name that its findings have.
type step struct {
	name string
	do   func(context.Context) error
}

// Run prints remarks and returns everything else that it finds. If required, it returns remarks too.
// The release may be nil.
func (b Build) Run(ctx context.Context, required bool, release *Release, out io.Writer) error {
	steps := []step{{"toolchain", b.toolchain}, {"toolchain", b.newest}, {"vuln", b.vulnerabilities}}
	if release != nil {
		steps = append([]step{{"release", release.prepared}}, steps...)
	}
	var refused []error
	for _, s := range steps {
		for _, err := range parts(s.do(ctx)) {
			var only remark
			if !required && errors.As(err, &only) {
				fmt.Fprintf(out, "%s: %v\n", s.name, only)
				continue
			}
			refused = append(refused, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return errors.Join(refused...)
}

// parts returns the errors that were joined.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

var pin = regexp.MustCompile(`(?m)^toolchain (go\S+)$`)

// pinned returns the toolchain that all modules name. Programs that are shipped together must have
// the same standard library.
func (b Build) pinned() (string, error) {
	var first string
	for _, file := range b.Modules {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		m := pin.FindSubmatch(text)
		if m == nil {
			return "", fmt.Errorf("%s has no line such as \"toolchain go1.26.8\"; run: go mod edit -toolchain=VERSION %s", file, file)
		}
		if first == "" {
			first = string(m[1])
		}
		if string(m[1]) != first {
			return "", fmt.Errorf("%s names %s, and %s %s; give all the same", b.Modules[0], first, file, m[1])
		}
	}
	return first, nil
}

// toolchain compares the Go that builds with the one that go.mod names.
func (b Build) toolchain(ctx context.Context) error {
	want, err := b.pinned()
	if err != nil {
		return err
	}
	have, err := command(ctx, nil, b.Go, "env", "GOVERSION")
	if err != nil {
		return err
	}
	if have != want {
		return remark(fmt.Sprintf("%s builds, and go.mod names %s: releases are built with the latter, whose bytes can be compared", have, want))
	}
	return nil
}

// proxyLimit bounds the wait for a proxy that does not answer.
const proxyLimit = time.Minute

// newest asks the module proxy for the newest patch of the Go that go.mod names, within its minor
// release: most known vulnerabilities of Go programs are those of the standard library.
func (b Build) newest(ctx context.Context) error {
	want, err := b.pinned()
	if err != nil {
		return nil // toolchain has said so
	}
	ctx, cancel := context.WithTimeout(ctx, proxyLimit)
	defer cancel()
	// Only local keeps go from loading that patch when it is asked for.
	said, err := command(ctx, []string{"GOTOOLCHAIN=local"}, b.Go, "list", "-m", "-f", "{{.Version}}", "go@"+strings.TrimPrefix(version.Lang(want), "go"))
	if err != nil {
		return remark(fmt.Sprintf("NOT CHECKED whether %s is the newest patch: %v", want, err))
	}
	if is := "go" + said; version.Compare(is, want) > 0 {
		return remark(fmt.Sprintf("%s is out, and go.mod names %s; run for each of %s: go mod edit -toolchain=%s FILE",
			is, want, strings.Join(b.Modules, " "), is))
	}
	return nil
}

// outOfReach is what govulncheck says when it cannot read the database: Go's own, or a mirror.
var outOfReach = regexp.MustCompile(`fetching vulnerabilities|unrecognized vulndb format`)

// nothing is what govulncheck says when it finds nothing.
const nothing = "No vulnerabilities found."

// vulnerabilities asks govulncheck. It returns what it found also when it could not look at all.
func (b Build) vulnerabilities(ctx context.Context) error {
	database := "-db=" + b.Database
	// Scans load all sources before they look for the database.
	var found []error
	for _, scan := range append([]Scan{{Args: []string{"-mode", "binary", b.Probe}}}, b.Scans...) {
		said, err := command(ctx, scan.Env, b.Govulncheck, append([]string{database}, scan.Args...)...)
		switch {
		case err == nil && strings.Contains(said, nothing):
		case err == nil: // it can end so after a panic, too
			found = append(found, fmt.Errorf("%s does not say %q:\n%s", b.Govulncheck, nothing, said))
		case outOfReach.MatchString(err.Error()):
			return errors.Join(append(found, remark(fmt.Sprintf("NOT CHECKED for known vulnerabilities, the database is out of reach: %v", err)))...)
		default:
			found = append(found, fmt.Errorf("%w\n%s", err, said))
		}
	}
	return errors.Join(found...)
}

// prepared refuses what cannot be a release.
func (r Release) prepared(ctx context.Context) error {
	changed, err := command(ctx, nil, "git", "status", "--porcelain", "--untracked-files=all") // whatever status.showUntrackedFiles says
	if err != nil {
		return err
	}
	left, err := os.ReadDir(r.Out)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	switch {
	case changed != "":
		return fmt.Errorf("these files are in no commit:\n%s", changed)
	case !strings.HasPrefix(r.Source, "https://"):
		return fmt.Errorf("%q is no URL of the project such as https://host/project; set SOURCE", r.Source)
	case len(left) > 0:
		return fmt.Errorf("%s has files of another build; remove it", r.Out)
	}
	return nil
}

// command returns what a program prints. An error has what it wrote to stderr.
func command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", c, err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}
