// Mkdist packages cnictl, built for every platform, for distribution:
//
//	mkdist -version v1.2.3 [-source https://host/project] [-revision COMMIT] [-builder URI] [-charts dist/chart] [-images] [-in .cache/dist] [-o dist]
//
// The -in directory has OS_ARCH/cnictl, man/ and completions/. SOURCE_DATE_EPOCH is the time
// of everything. The working directory is the root of the checkout. With -images the checksums and
// the provenance are also those of the image archives in the -o directory.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cnictl/tools/release/dist"
	"cnictl/tools/release/software"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "mkdist:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out, errOut io.Writer) error {
	fs := flag.NewFlagSet("mkdist", flag.ContinueOnError)
	fs.SetOutput(errOut)
	in := fs.String("in", ".cache/dist", "directory of what was built")
	to := fs.String("o", "dist", "directory to write to")
	var r dist.Release
	fs.StringVar(&r.Version, "version", "unknown", "version of the programs")
	fs.StringVar(&r.Source, "source", "", "URL of the project, below which releases are published; without it there is no manifest for krew and no provenance")
	fs.StringVar(&r.Revision, "revision", "", "commit of the sources; without it there is no provenance")
	fs.StringVar(&r.Builder, "builder", "", "URI of who builds")
	fs.BoolVar(&r.Images, "images", false, "include the image archives of the output directory")
	fs.StringVar(&r.Charts, "charts", "", "directory of packages of Helm charts")
	if err := fs.Parse(args); err != nil {
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	r.License = string(license)
	if r.Time, err = software.Time(); err != nil {
		return err
	}
	if r.Inventory, err = software.Sources(); err != nil {
		return err
	}
	r.Programs, r.Man, r.Completions = *in, filepath.Join(*in, "man"), filepath.Join(*in, "completions")
	r.Kubectl, r.Krew = "deploy/krew/kubectl_complete-cni", "deploy/krew/aws-cni.yaml"
	names, err := r.Build(*to)
	for _, name := range names {
		fmt.Fprintln(out, filepath.Join(*to, name))
	}
	if err == nil && r.Source != "" && !r.Proven() {
		fmt.Fprintf(errOut, "mkdist: files differ from the commit: %s is left out\n", dist.ProvenanceFile)
	}
	if err == nil && r.Source == "" {
		fmt.Fprintln(errOut, "mkdist: no URL of the project: krew/aws-cni.yaml and provenance.intoto.json are left out, and packages name no home page; set SOURCE")
	}
	return err
}
