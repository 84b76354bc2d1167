package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
)

// newFlags returns a set of flags that reports errors in one line.
func newFlags(command string) *flag.FlagSet {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parse reads flags, and up to `others` positional arguments anywhere among them.
func parse(flags *flag.FlagSet, args []string, others int) ([]string, error) {
	var positional []string
	for {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, misuse{err}
		}
		if flags.NArg() == 0 {
			return positional, nil
		}
		if len(positional) == others {
			return nil, misuse{fmt.Errorf("%s: unexpected argument `%s`", flags.Name(), flags.Arg(0))}
		}
		positional = append(positional, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// variantFlag rejects --variant, because this peer has no variants.
func variantFlag(flags *flag.FlagSet) {
	flags.Func("variant", "there is none", func(string) error { return errors.New("this peer has no variants") })
}

// threadsFlag adds --threads: the number of threads that run Go code, by default one per CPU.
func threadsFlag(flags *flag.FlagSet) {
	flags.Func("threads", "", func(text string) error {
		threads, err := strconv.Atoi(text)
		if err != nil || threads < 1 {
			return errors.New("a number from 1 on")
		}
		runtime.GOMAXPROCS(threads)
		return nil
	})
}
