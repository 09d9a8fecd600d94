// Mkimage packs built programs as container images into OCI archives, which "ctr images
// import", "docker load" and "skopeo copy oci-archive:" read:
//
//	mkimage [-arch amd64,arm64] [-o DIR] [-tag dev] [-version V] [-revision R] [-source URL] LIST
//
// LIST is a file such as deploy/images/images.yaml. Its paths are relative to the working
// directory, the root of the checkout. Beside each archive goes the bill of materials of its
// images. SOURCE_DATE_EPOCH is the time of the images.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"cnictl/tools/release/image"
	"cnictl/tools/release/software"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "mkimage:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out, errOut io.Writer) error {
	var r image.Release
	fs := flag.NewFlagSet("mkimage", flag.ContinueOnError)
	fs.SetOutput(errOut)
	archs := fs.String("arch", runtime.GOARCH, "architectures, with commas")
	dir := fs.String("o", "dist", "directory to write the archives to")
	tag := fs.String("tag", "dev", "tag of the images")
	fs.StringVar(&r.Version, "version", "unknown", "version of the programs")
	fs.StringVar(&r.Revision, "revision", "", "commit that they were built from")
	fs.StringVar(&r.Source, "source", "", "URL of the source code")
	license := fs.String("license", "LICENSE", "file with this project's licence")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return errors.New("name one list of images; see -h")
	}
	if err := prepare(&r, *license); err != nil {
		return err
	}
	images, err := image.ReadList(fs.Arg(0))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	for _, i := range images {
		name := "docker.io/cnictl/" + i.Name + ":" + *tag
		file := filepath.Join(*dir, i.Name+".tar")
		if err := i.Pack(r, name, strings.Split(*archs, ","), file); err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %s  %s  %.1f MB\n", file, name, *archs, float64(info.Size())/1e6)
	}
	return nil
}

// prepare reads the inputs that are not flags.
func prepare(r *image.Release, license string) error {
	text, err := os.ReadFile(license)
	if err != nil {
		return err
	}
	r.License = string(text)
	if r.Time, err = software.Time(); err != nil {
		return err
	}
	r.Inventory, err = software.Sources()
	return err
}
