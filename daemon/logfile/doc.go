// Package logfile opens and rotates the log files of root in a directory that others may write
// to: log shippers mount /var/log/aws-routed-eni. Whatever they put there, no other file is
// read, written or created, and opening never blocks.
//
// A log file is a regular file with one link, in a directory that is not named by a link. Links
// to the directories above are followed: they are the operator's. Rotation has upstream's names
// and limits, which are lumberjack's.
//
// aws-cni opens its log once per run, so this package needs neither os nor fmt.
package logfile
