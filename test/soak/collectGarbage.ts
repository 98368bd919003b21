// Collects the garbage of a running Node process, through the inspector that a signal opens on its usual port.
// Otherwise the size of a process says when the engine last collected, and not what the process keeps.
import { once } from "node:events"
import process from "node:process"
import { until } from "../support/rig/until.ts"

const place = "http://127.0.0.1:9229/json"

const read = () =>
  fetch(place).then(
    (answer) => answer.json() as Promise<ReadonlyArray<{ readonly webSocketDebuggerUrl: string }>>,
    () => []
  )

export const collectGarbage = async (pid: number): Promise<void> => {
  process.kill(pid, "SIGUSR1")
  await until("the inspector listens", async () => (await read()).length > 0, 10_000)
  const socket = new WebSocket((await read())[0]!.webSocketDebuggerUrl)
  await once(socket, "open")
  for (const [id, method] of ["HeapProfiler.enable", "HeapProfiler.collectGarbage"].entries()) {
    socket.send(JSON.stringify({ id, method }))
    await once(socket, "message")
  }
  socket.close()
}
