// A client of a running Node process's inspector (the Chrome DevTools protocol).

export interface Inspector {
  readonly ask: <A>(method: string, params?: object) => Promise<A>
  readonly close: () => void
}

/** Connects to the inspector at a WebSocket URL. */
export const openInspector = async (url: string): Promise<Inspector> => {
  const socket = new WebSocket(url)
  const answers = new Map<number, (result: never) => void>()
  await new Promise((resolve) => (socket.onopen = resolve))
  socket.onmessage = ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { readonly id: number; readonly result: never }
    answers.get(id)?.(result)
    answers.delete(id)
  }
  let last = 0
  const ask = <A>(method: string, params: object = {}) =>
    new Promise<A>((resolve) => {
      const id = ++last
      answers.set(id, resolve)
      socket.send(JSON.stringify({ id, method, params }))
    })
  return { ask, close: () => socket.close() }
}
