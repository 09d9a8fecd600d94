// Mkimage packs the two images of aws-node from built programs, without Docker: into
// archives as "docker save" writes them, which "docker load" and "ctr images import" read.
//
//	mkimage -bin bin -reference bin/reference -root DIR -o dist [-tag dev]
//
// The same inputs give the same bytes: names are sorted, times fixed, owners 0. DIR holds
// what is not ours, see tools/images/rootfs.sh. deploy/images has the same content for
// those who build with Docker.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "mkimage:", err)
		}
		os.Exit(1)
	}
}

// sources are the directories that images are made from.
type sources struct {
	bin       string // our programs
	reference string // the plugins of containernetworking/plugins
	root      string // programs, libraries and certificates of others
	license   string // a file
	support   string // the script that collects a node's state
}

func run(args []string, out, errOut io.Writer) error {
	var from sources
	fs := flag.NewFlagSet("mkimage", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.StringVar(&from.bin, "bin", "bin", "directory of this project's programs")
	fs.StringVar(&from.reference, "reference", "bin/reference", "directory of the reference plugins")
	fs.StringVar(&from.root, "root", "", "(required) directory that tools/images/rootfs.sh printed")
	fs.StringVar(&from.license, "license", "LICENSE", "license of this project's programs")
	fs.StringVar(&from.support, "support", "deploy/images/aws-cni-support.sh", "script that collects a node's state")
	dir := fs.String("o", "dist", "directory to write the archives to")
	tag := fs.String("tag", "dev", "tag of both images")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if from.root == "" || fs.NArg() > 0 {
		return errors.New("-root is required, and there are no arguments; see -h")
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	// For who builds with Docker.
	if err := os.WriteFile(filepath.Join(*dir, "eni-max-pods.txt"), []byte(maxPods()), 0o644); err != nil {
		return err
	}
	for _, i := range images() {
		archive, err := i.pack(from, *tag, runtime.GOARCH)
		if err != nil {
			return fmt.Errorf("pack image %s: %w", i.name, err)
		}
		path := filepath.Join(*dir, i.name+".tar")
		if err := os.WriteFile(path, archive, 0o644); err != nil {
			return fmt.Errorf("pack image %s: %w", i.name, err)
		}
		fmt.Fprintf(out, "%s  docker.io/cnictl/%s:%s  %.1f MB\n", path, i.name, *tag, float64(len(archive))/1e6)
	}
	return nil
}
