package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, the same on all Linux architectures that Go supports.
const ticksPerSecond = 100

// used returns the processor time of a process so far, including ended threads.
func used(pid int) (time.Duration, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	// The second field is a name in brackets; user and system time are fields 14 and 15.
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 13 {
		return 0, errors.New("read processor time: /proc has too few fields")
	}
	var ticks int64
	for _, field := range f[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// peak returns the maximum memory of a process so far, in bytes.
func peak(pid int) (float64, error) { return held(pid, "VmHWM:") }

// held returns the memory of a process in bytes: "VmRSS:" for now, "VmHWM:" for the maximum so far.
func held(pid int, field string) (float64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == field {
			kb, err := strconv.ParseFloat(string(f[1]), 64)
			if err != nil {
				return 0, fmt.Errorf("read memory: %w", err)
			}
			return kb * 1024, nil
		}
	}
	return 0, fmt.Errorf("read memory: /proc has no %s", field)
}

// sockets counts a process's open sockets.
func sockets(pid int) (int, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	open, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("count sockets: %w", err)
	}
	count := 0
	for _, fd := range open {
		to, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if err == nil && strings.HasPrefix(to, "socket:") { // it may be closed by now
			count++
		}
	}
	return count, nil
}

// spent returns the processor time of a program that has ended.
func spent(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
