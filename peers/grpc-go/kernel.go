package main

import (
	"os"
	"path/filepath"
	"strings"
)

// established counts the sockets of this process that the kernel calls established, TCP and Unix stream; nil where it
// does not say.
func established() *int {
	own := ownSockets()
	tcp, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		return nil
	}
	// A kernel without IPv6 has no such table.
	tcp6, _ := os.ReadFile("/proc/self/net/tcp6")
	unix, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return nil
	}
	count := tcpTable.count(string(tcp), own) + tcpTable.count(string(tcp6), own) + unixTable.count(string(unix), own)
	return &count
}

// Inodes of the sockets that this process has open.
func ownSockets() map[string]bool {
	own := map[string]bool{}
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, file := range files {
		// A descriptor may be closed between the listing and the look at it.
		link, _ := os.Readlink(file)
		if inode, is := strings.CutPrefix(link, "socket:["); is {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own
}

// table says which columns of a table in /proc/net matter, from 0, and what an established socket has in them.
type table struct {
	conditions map[int]string
	inode      int
}

var (
	// TCP_ESTABLISHED is 01.
	tcpTable = table{map[int]string{3: "01"}, 9}
	// SOCK_STREAM is 0001, SS_CONNECTED 03.
	unixTable = table{map[int]string{4: "0001", 5: "03"}, 6}
)

func (t table) count(text string, own map[string]bool) int {
	count := 0
	for row := range strings.Lines(text) {
		columns := strings.Fields(row)
		counts := len(columns) > t.inode && own[columns[t.inode]]
		for index, value := range t.conditions {
			counts = counts && columns[index] == value
		}
		if counts {
			count++
		}
	}
	return count
}
