package kubeapi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"cnictl/testenv"
)

// Version is the Kubernetes release that tests run, as in tools/kube/go.mod.
const Version = "v1.35.4"

// Environment variables that say where the programs are.
const (
	programsVar = "CNI_TEST_KUBE"  // a directory with kube-apiserver and etcd
	cacheVar    = "CNI_TEST_CACHE" // moves the cache of "make kube"
)

// programs are the paths of a server's programs.
type programs struct{ apiserver, etcd string }

// requirePrograms finds the programs or skips the test.
func requirePrograms(t testing.TB) programs {
	t.Helper()
	p, err := locatePrograms()
	if err != nil {
		testenv.Missing(t, "kube", err.Error(), "make kube")
	}
	return p
}

// locatePrograms finds the programs where "make kube" or the environment puts them.
func locatePrograms() (programs, error) {
	dir, err := ProgramDir()
	if err != nil {
		return programs{}, err
	}
	return findPrograms(dir)
}

// ProgramDir returns the directory in which tools/kube/build.sh puts its results.
func ProgramDir() (string, error) {
	if dir := os.Getenv(programsVar); dir != "" {
		return dir, nil
	}
	cache := os.Getenv(cacheVar)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find kube-apiserver (set %s or %s): %w", programsVar, cacheVar, err)
		}
		cache = filepath.Join(user, "cnictl")
	}
	return filepath.Join(cache, "kube-"+Version+"-"+runtime.Version()+"-"+runtime.GOARCH), nil
}

// findPrograms looks for etcd in the directory and then in the PATH.
func findPrograms(dir string) (programs, error) {
	apiserver, err := exec.LookPath(filepath.Join(dir, "kube-apiserver"))
	if err != nil {
		return programs{}, fmt.Errorf("kube-apiserver: %w", err)
	}
	etcd, err := exec.LookPath(filepath.Join(dir, "etcd"))
	if errors.Is(err, os.ErrNotExist) {
		etcd, err = exec.LookPath("etcd")
	}
	if err != nil {
		return programs{}, fmt.Errorf("etcd: %w", err)
	}
	return programs{apiserver: apiserver, etcd: etcd}, nil
}
