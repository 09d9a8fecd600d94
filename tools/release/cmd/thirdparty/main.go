// Thirdparty prints a page with the modules linked into programs, and the licences of each.
// It fails on a licence that is unknown or not allowed.
//
//	thirdparty PROGRAM…
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cnictl/tools/release/software"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "thirdparty:", err)
		os.Exit(1)
	}
}

func run(programs []string, out io.Writer) error {
	sources, err := software.Sources()
	if err != nil {
		return err
	}
	inventory := sources()
	var errs []error
	for _, p := range programs {
		errs = append(errs, inventory.Add(filepath.Base(p), p))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	licenses := map[string]string{}
	for _, m := range inventory.Sorted() {
		licenses[m.Path] = m.License
	}
	w := bufio.NewWriter(out)
	fmt.Fprint(w, "# Third-party modules\n\nGo modules in the images and in cnictl, as `make generate` finds them in the programs for Linux. Versions are in the\n",
		"SBOM of each image and package. Licences are those of the module's files; `std` is Go's standard library.\n\n| module | licence |\n|---|---|\n")
	var paths []string
	for path := range licenses {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, strings.Compare)
	for _, path := range paths {
		fmt.Fprintf(w, "| %s | %s |\n", path, licenses[path])
	}
	return w.Flush()
}
