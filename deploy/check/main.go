// Reads Compose files as Docker Compose does, with its own loader, and says what is wrong with them.
//
//	go run . FILE...
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

// check loads the file with every variable that it insists on set to something.
func check(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithName("check"), cli.WithEnv([]string{"COURSER_AUTH_PASSWORD=x"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	for _, service := range project.Services {
		if service.Build == nil {
			continue
		}
		dockerfile := service.Build.Dockerfile
		if _, err := os.Stat(service.Build.Context + "/" + dockerfile); err != nil {
			return fmt.Errorf("service %s: %w", service.Name, err)
		}
	}
	return nil
}
