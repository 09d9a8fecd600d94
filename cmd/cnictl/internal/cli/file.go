package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReplaceFile replaces a file atomically, readable by its owner only: it may hold names
// and addresses of a cluster. Anything but a regular file is left alone.
func ReplaceFile(name string, data []byte) error {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // it may be gone already
	}
	return err
}
