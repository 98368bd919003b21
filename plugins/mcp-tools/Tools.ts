// The tools that this process offers. A plugin registers its tools while its Layer is built, and the Scope removes
// them. A list contains the tools registered at that moment, in the order of registration. The server answers agents
// only after every plugin has started, so the first list is complete.
import { Context, Effect, Layer, type Scope } from "effect"
import type { Tool } from "./Tool.ts"

export class Tools extends Context.Service<
  Tools,
  {
    /** Offers a tool until the Scope closes; a second tool with the same name is a defect. */
    readonly register: (tool: Tool) => Effect.Effect<void, never, Scope.Scope>
    readonly all: () => ReadonlyArray<Tool>
    readonly find: (name: string) => Tool | undefined
  }
>()("tollkeeper/mcp-tools/Tools") {
  static readonly layer = Layer.sync(Tools, () => {
    const tools = new Map<string, Tool>()
    return Tools.of({
      register: (tool) =>
        Effect.asVoid(
          Effect.acquireRelease(
            tools.has(tool.name)
              ? Effect.die(new Error(`a tool ${tool.name} is already registered`))
              : Effect.sync(() => void tools.set(tool.name, tool)),
            () => Effect.sync(() => void tools.delete(tool.name))
          )
        ),
      all: () => [...tools.values()],
      find: (name) => tools.get(name)
    })
  })
}
