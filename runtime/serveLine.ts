// The command line of `tollkeeper start` and `tollkeeper tools`: a process that stays loads none of the commands that
// come and go, nor what only they stand on.
import "effect/schema/SchemaJITCompiler/enable"
import { Command } from "effect/cli"
import { start, tools } from "./commands/start.ts"
import { runCommands, tollkeeper } from "./runCommands.ts"
import { version } from "./version.ts"

runCommands(Command.run(tollkeeper.pipe(Command.withSubcommands([start, tools])), { version }), true)
