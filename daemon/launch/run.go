package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/config"
	"cnictl/daemon/install"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/logging"
)

// Deps holds what the process passes to Run. Empty paths mean the defaults of the image and
// the manifest.
type Deps struct {
	Config   config.Config
	Problems []config.Problem // of loading Config
	Signals  <-chan os.Signal // SIGTERM and SIGINT; buffered
	Stdout   *os.File
	Stderr   *os.File
	Version  string

	Dir     string // with daemon, plugins and template; "" = the working directory
	HostRun string // where /run/cni of the host is mounted; "" = /host/run/cni
}

const (
	// grace is how long the daemon may take to end, above its maximum of 8 s and below the
	// manifest's terminationGracePeriodSeconds of 10.
	grace = 9 * time.Second

	lookEvery   = 5 * time.Second  // at the installed files
	reportEvery = 10 * time.Second // what is being waited for
)

// The metadata service is tried this often for an address of the node.
const (
	attempts      = 10
	metadataLimit = time.Minute
)

// launcher is one run.
type launcher struct {
	Deps
	log      *slog.Logger
	metadata metadata
	seen     watch
}

// Run is the whole life of the process. It returns nil when the daemon has ended cleanly,
// as it does when asked to. It has logged any error that it returns.
func Run(ctx context.Context, d Deps) error {
	if d.Dir == "" {
		d.Dir = "."
	}
	if d.HostRun == "" {
		d.HostRun = "/host/run/cni"
	}
	l := &launcher{
		Deps: d, log: logging.Console(d.Stderr), seen: watch{altered: map[string]bool{}},
		metadata: imds.New(imds.Config{Attempts: attempts, Timeout: metadataLimit}),
	}
	err := l.run(ctx)
	for _, e := range each(err) {
		l.log.Error(e.Error()) //nolint:sloglint // the fatal reason is the message people search for
	}
	return err
}

// each returns the errors that an error was joined from; each gets its own log line.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func (l *launcher) run(ctx context.Context) error {
	if err := check(l.Config, l.Problems, l.log); err != nil {
		return err
	}
	if err := l.installPlugins(); err != nil {
		return err
	}
	if err := l.removeStale(); err != nil {
		return fmt.Errorf(textCopy+": %w", err)
	}
	l.log.Info(textStarting, slog.String("version", l.Version))
	daemonLog := openDaemonLog(l.Config.LogFile)
	c, err := startChild(l.Dir, filepath.Join(l.Dir, daemonProgram), l.Stdout, l.Stderr)
	if err != nil {
		return fmt.Errorf(textStartDaemon+": %w", err)
	}
	return l.supervise(ctx, c, daemonLog)
}

// supervise stays with the daemon until it ends. Meanwhile it first waits for the daemon to
// serve, then renders the conflist, which may have to query the metadata service.
func (l *launcher) supervise(ctx context.Context, c *child, daemonLog daemonLog) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.log.Info(textChecking)
	started := time.Now()
	answers := make(chan error, 1) // the daemon's latest answer
	serving, rendered := make(chan error, 1), make(chan conflistResult, 1)
	go func() { // ends with ctx at the latest, like the other
		ctx, cancel := context.WithTimeout(ctx, l.Config.StartLimit)
		defer cancel()
		serving <- awaitServing(ctx, cniwire.GRPCSocket, func(err error) { latest(answers, err) })
	}()
	look, report := time.NewTicker(lookEvery), time.NewTicker(reportEvery)
	defer look.Stop()
	defer report.Stop()
	var answer error
	for {
		select {
		case err := <-c.ended:
			return l.ended(c, err)
		case s := <-l.Signals:
			return l.stop(c, s, nil)
		case answer = <-answers:
		case err := <-serving:
			report.Stop()
			if err != nil {
				return l.stop(c, syscall.SIGTERM, fmt.Errorf("%s: not within CNI_START_LIMIT (%s): %s", textTimedOut, l.Config.StartLimit, awaited(answer, daemonLog)))
			}
			go func() {
				text, err := l.render(ctx)
				rendered <- conflistResult{text, err}
			}()
		case r := <-rendered:
			if err := l.installConflist(r); err != nil {
				return l.stop(c, syscall.SIGTERM, err)
			}
		case <-report.C:
			l.log.Info(textChecking+"the daemon is not ready yet",
				slog.Duration("after", time.Since(started).Round(time.Second)), slog.String("reason", awaited(answer, daemonLog)))
		case <-look.C:
			l.checkFiles()
		}
	}
}

type conflistResult struct {
	text []byte
	err  error
}

// installConflist installs the conflist; from then on the runtime considers the network
// ready.
func (l *launcher) installConflist(r conflistResult) error {
	if r.err != nil {
		return fmt.Errorf(textGenerate+": %w", r.err)
	}
	l.log.Info(textCopying)
	if _, err := install.Config(l.conflistPath(), r.text); err != nil {
		return fmt.Errorf(textCopy+": %w", err)
	}
	l.seen.conflist = r.text
	l.log.Info(textSuccessful)
	return nil
}

// awaited describes a daemon that does not serve yet.
func awaited(answer error, log daemonLog) string {
	text := "no answer yet"
	if answer != nil {
		text = answer.Error()
	}
	if reason := log.reason(); reason != "" {
		text += "; it last logged: " + reason
	}
	return text
}

// latest puts a value into a channel of capacity one, replacing an older value.
func latest(to chan error, v error) {
	select {
	case <-to:
	default:
	}
	to <- v
}

// ended returns why the daemon failed, with its last message, or logs its normal end.
func (l *launcher) ended(c *child, err error) error {
	if err != nil {
		if last := c.stderr.lines(5); last != "" {
			err = fmt.Errorf("%w; its last message: %s", err, last)
		}
		return fmt.Errorf(textWait+": %w", err)
	}
	l.log.Info(textStopped)
	return nil
}

// stop ends the daemon by a signal, waits for its end, and returns why, or how the daemon
// ended if why is nil. It forwards further signals; when grace is over it kills the daemon.
func (l *launcher) stop(c *child, s os.Signal, why error) error {
	kill := time.NewTimer(grace)
	defer kill.Stop()
	for {
		if err := l.passOn(c, s); err != nil {
			return errors.Join(why, err)
		}
		select {
		case err := <-c.ended:
			if err = l.ended(c, err); why == nil {
				why = err
			}
			return why
		case s = <-l.Signals:
		case <-kill.C:
			err := fmt.Errorf("the daemon did not exit within %s of the signal and was killed", grace)
			if killErr := c.signal(syscall.SIGKILL); killErr != nil {
				return errors.Join(why, err, killErr)
			}
			<-c.ended
			return errors.Join(why, err)
		}
	}
}

func (l *launcher) passOn(c *child, s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		number = syscall.SIGTERM
	}
	l.log.Info("stopping the daemon", slog.String("signal", s.String()))
	return c.signal(number)
}
