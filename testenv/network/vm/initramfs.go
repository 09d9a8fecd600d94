package vm

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// What the initramfs holds besides process 1, the calling program.
const (
	initPath   = "/init"
	jobPath    = "/job.json"
	modulesDir = "/modules"
	machineDir = "/machine" // where the machine's files are mounted
)

// writeInitramfs writes the archive that the guest's kernel boots from.
func writeInitramfs(path string, files Files, program string, j job) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buffer := bufio.NewWriterSize(out, 1<<20)
	a := &archive{out: buffer}
	for _, dir := range []string{modulesDir, machineDir} {
		a.directory(dir)
	}
	libraries, err := sharedLibraries(program)
	if err != nil {
		return err
	}
	for _, library := range libraries {
		a.parents(library)
		a.file(library, library)
	}
	a.file(initPath, program)
	modules, err := files.modules()
	if err != nil {
		return err
	}
	for i, module := range modules {
		a.file(fmt.Sprintf("%s/%02d", modulesDir, i), module)
	}
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	a.add(jobPath, fileMode, data)
	a.add("/TRAILER!!!", 0, nil)
	return errors.Join(a.err, buffer.Flush())
}

// sharedLibraries returns the dynamic linker and the libraries that a program names: with the
// race detector Go links the system's libc.
func sharedLibraries(program string) ([]string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	interpreter := f.Section(".interp")
	if interpreter == nil {
		return nil, nil
	}
	name, err := interpreter.Data()
	if err != nil {
		return nil, fmt.Errorf("read the dynamic linker of %s: %w", program, err)
	}
	paths := []string{string(name[:len(name)-1])} // without the trailing zero byte
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("read the libraries of %s: %w", program, err)
	}
	for _, name := range names {
		var found string
		for _, dir := range []string{"/lib/x86_64-linux-gnu", "/lib64", "/usr/lib"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				found = filepath.Join(dir, name)
				break
			}
		}
		if found == "" {
			return nil, fmt.Errorf("find library %s of %s", name, program)
		}
		paths = append(paths, found)
	}
	return paths, nil
}

// archive writes cpio's "newc" format.
type archive struct {
	out   io.Writer
	inode int
	made  map[string]bool
	err   error // the first one
}

const (
	fileMode      = 0o100755
	directoryMode = 0o040755
)

func (a *archive) directory(path string) { a.add(path, directoryMode, nil) }

// parents adds the directories above a path.
func (a *archive) parents(path string) {
	dir := filepath.Dir(path)
	if dir == "/" || a.made[dir] {
		return
	}
	a.parents(dir)
	if a.made == nil {
		a.made = map[string]bool{}
	}
	a.made[dir] = true
	a.directory(dir)
}

func (a *archive) file(path, from string) {
	data, err := os.ReadFile(from)
	if err != nil && a.err == nil {
		a.err = err
	}
	a.add(path, fileMode, data)
}

func (a *archive) add(path string, mode int, data []byte) {
	if a.err != nil {
		return
	}
	name := path[1:] + "\x00"
	a.inode++
	// Inode, mode, user, group, links, time, size, device, device of a device file, length
	// of the name, checksum.
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", //
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
	for _, part := range [][]byte{[]byte(header + name), data} {
		padding := (4 - len(part)%4) % 4
		if _, err := a.out.Write(append(part[:len(part):len(part)], make([]byte, padding)...)); err != nil {
			a.err = err
			return
		}
	}
}
