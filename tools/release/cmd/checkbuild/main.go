// Checkbuild looks for known vulnerabilities in what is shipped and for a newer patch of Go, and
// prints what it could not check. With -required that is an error.
//
//	checkbuild -govulncheck PROGRAM -probe PROGRAM [-tags TAGS] [-systems OS,…] [-go go] [-db URL] [-required] [-release DIR -source https://host/project]
//
// The working directory is the root of the checkout. With -release the commit and the directory to
// write to must fit a release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"cnictl/tools/release/check"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

func run(args []string, out, errOut io.Writer) error {
	fs := flag.NewFlagSet("checkbuild", flag.ContinueOnError)
	fs.SetOutput(errOut)
	b := check.Build{Modules: []string{"go.mod", "tools/reference/go.mod"}}
	fs.StringVar(&b.Go, "go", "go", "the program go")
	fs.StringVar(&b.Govulncheck, "govulncheck", "govulncheck", "the program govulncheck")
	fs.StringVar(&b.Database, "db", "https://vuln.go.dev", "URL of the database of vulnerabilities")
	fs.StringVar(&b.Probe, "probe", "", "a small Go program")
	systems := fs.String("systems", "", "operating systems that cnictl is shipped for, with commas between them")
	tags := fs.String("tags", "", "build tags of the programs")
	required := fs.Bool("required", false, "refuse what could not be checked")
	var r check.Release
	fs.StringVar(&r.Source, "source", "", "URL of the project")
	fs.StringVar(&r.Out, "release", "", "directory that a release is to be written to")
	if err := fs.Parse(args); err != nil {
		return err
	}
	b.Scans = []check.Scan{
		{Args: []string{"-tags", *tags, "./cmd/..."}, Env: []string{"GOOS=linux"}},
		{Args: []string{"-C", "tools/reference", "tool"}, Env: []string{"GOOS=linux"}},
	}
	for system := range strings.SplitSeq(*systems, ",") {
		if system != "" && system != "linux" { // the first scan has cnictl for it
			b.Scans = append(b.Scans, check.Scan{Args: []string{"-tags", *tags, "./cmd/cnictl"}, Env: []string{"GOOS=" + system}})
		}
	}
	release := &r
	if r.Out == "" {
		release = nil
	}
	return b.Run(context.Background(), *required, release, out)
}
