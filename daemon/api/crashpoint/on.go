//go:build crashpoints

package crashpoint

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// passed counts the passes of each point. The pass that kills the process never releases
// the lock, so that no later pass is recorded.
var passed = struct {
	sync.Mutex
	n map[Point]int
}{n: map[Point]int{}}

// Here records the pass of a point, and kills the process if CNI_CRASH_AT selects it.
func Here(p Point) {
	passed.Lock()
	passed.n[p]++
	note(p)
	if !fatal(p, passed.n[p]) {
		passed.Unlock()
		return
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
		panic("crash point " + string(p) + ": " + err.Error())
	}
	select {} // the signal is on its way
}

// BeforeEC2 marks the point before an EC2 action that changes something. It ignores other
// actions.
func BeforeEC2(action string) { known(Point("before-" + action)) }

// AfterEC2 marks the point after an EC2 action, like BeforeEC2.
func AfterEC2(action string) { known(Point("after-" + action)) }

func known(p Point) {
	if slices.Contains(all, p) {
		Here(p)
	}
}

// fatal reports whether CNI_CRASH_AT selects the nth pass of a point.
func fatal(p Point, nth int) bool {
	at, _ := syscall.Getenv("CNI_CRASH_AT")
	name, count, counted := strings.Cut(at, ":")
	want := 1
	if counted {
		var err error
		if want, err = strconv.Atoi(count); err != nil {
			panic("CNI_CRASH_AT=" + at + ": want a point, or a point, a colon and a number")
		}
	}
	if name != "" && !slices.Contains(all, Point(name)) {
		panic("CNI_CRASH_AT=" + at + ": unknown crash point")
	}
	return name == string(p) && nth == want
}

// note appends the point to the file that CNI_CRASH_LIST names.
func note(p Point) {
	path, _ := syscall.Getenv("CNI_CRASH_LIST")
	if path == "" {
		return
	}
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_APPEND|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		panic("CNI_CRASH_LIST=" + path + ": " + err.Error())
	}
	defer syscall.Close(fd)
	if _, err := syscall.Write(fd, []byte(p+"\n")); err != nil {
		panic("CNI_CRASH_LIST=" + path + ": " + err.Error())
	}
}
