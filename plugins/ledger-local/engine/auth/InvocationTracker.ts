// Matches one tree of authorized invocations against the calls that actually happen, node by node. Each frame of the
// call stack has one slot; a slot is filled when that frame's requirement matched a node, and a later requirement may
// only match an unused child of the deepest filled slot. The root matches once. Recording builds such a tree instead of
// matching it.
import { AuthorizedFunctionType } from "../xdr/types.ts"
import { codec, latin1, type SorobanAuthorizedFunction, type SorobanAuthorizedInvocation } from "../xdr/Xdr.ts"

/** A function as a string for comparison; creation without constructor arguments is the same in both of its forms. */
export const functionString = (fn: SorobanAuthorizedFunction): string =>
  latin1(
    codec.SorobanAuthorizedFunction.encode(
      fn.type === AuthorizedFunctionType.createContract
        ? { type: 2, createContractV2HostFn: { ...fn.createContractHostFn, constructorArgs: [] } }
        : fn
    )
  )

interface InvocationNode {
  readonly fn: SorobanAuthorizedFunction
  id: string | undefined
  used: boolean
  readonly children: Array<InvocationNode>
}

const nodeOf = (invocation: SorobanAuthorizedInvocation): InvocationNode => ({
  fn: invocation.function,
  id: undefined,
  used: false,
  children: invocation.subInvocations.map(nodeOf)
})

const idOf = (node: InvocationNode): string => (node.id ??= functionString(node.fn))

const invocationOf = (node: InvocationNode): SorobanAuthorizedInvocation => ({
  function:
    node.fn.type === AuthorizedFunctionType.createContract
      ? { type: 2, createContractV2HostFn: { ...node.fn.createContractHostFn, constructorArgs: [] } }
      : node.fn,
  subInvocations: node.children.map(invocationOf)
})

/** Which nodes of a tree are used, in the tree's own shape. */
export interface NodeSnapshot {
  readonly used: boolean
  readonly children: ReadonlyArray<NodeSnapshot>
}

const snapshotOf = (node: InvocationNode): NodeSnapshot => ({
  used: node.used,
  children: node.children.map(snapshotOf)
})

const restore = (node: InvocationNode, snapshot: NodeSnapshot): void => {
  node.used = snapshot.used
  node.children.length = snapshot.children.length
  node.children.forEach((child, i) => restore(child, snapshot.children[i]!))
}

export class InvocationTracker {
  readonly root: InvocationNode
  /** One slot per frame: the node matched in it, or undefined. */
  readonly #stack: Array<InvocationNode | undefined>
  #rootFrame: number | undefined
  #done = false

  private constructor(root: InvocationNode, stack: Array<InvocationNode | undefined>) {
    this.root = root
    this.#stack = stack
  }

  static of(invocation: SorobanAuthorizedInvocation): InvocationTracker {
    return new InvocationTracker(nodeOf(invocation), [])
  }

  /** A tracker with the requirement of the frame at depth `depth` as its root (1 is the outermost). */
  static recording(fn: SorobanAuthorizedFunction, depth: number): InvocationTracker {
    const root: InvocationNode = { fn, id: undefined, used: true, children: [] }
    const stack: Array<InvocationNode | undefined> = new Array(depth - 1).fill(undefined)
    stack.push(root)
    const tracker = new InvocationTracker(root, stack)
    tracker.#rootFrame = depth - 1
    return tracker
  }

  push(): void {
    this.#stack.push(undefined)
  }

  pop(): void {
    this.#stack.pop()
    if (this.#rootFrame !== undefined && this.#rootFrame >= this.#stack.length) this.#done = true
  }

  get isEmpty(): boolean {
    return this.#stack.length === 0
  }

  get isActive(): boolean {
    return this.root.used && !this.#done
  }

  get isFrameMatched(): boolean {
    return this.#stack.at(-1) !== undefined
  }

  get hasMatchInStack(): boolean {
    return this.#stack.some((slot) => slot !== undefined)
  }

  #deepest(): InvocationNode | undefined {
    for (let i = this.#stack.length - 1; i >= 0; i--) if (this.#stack[i] !== undefined) return this.#stack[i]
    return undefined
  }

  /** Matches the current frame's requirement; false when this tree has no unused node for it here. */
  match(id: string, allowRoot: boolean): boolean {
    if (this.isFrameMatched || this.#stack.length === 0) return false
    const deepest = this.#deepest()
    const node =
      deepest === undefined
        ? !this.root.used && allowRoot && idOf(this.root) === id
          ? this.root
          : undefined
        : deepest.children.find((child) => !child.used && idOf(child) === id)
    if (node === undefined) return false
    node.used = true
    if (deepest === undefined) this.#rootFrame = this.#stack.length - 1
    this.#stack[this.#stack.length - 1] = node
    return true
  }

  /** Adds the current frame's requirement under the deepest matched one; false when the frame already has one. */
  record(fn: SorobanAuthorizedFunction): boolean {
    const deepest = this.#deepest()
    if (this.isFrameMatched || deepest === undefined) return false
    const node: InvocationNode = { fn, id: undefined, used: true, children: [] }
    deepest.children.push(node)
    this.#stack[this.#stack.length - 1] = node
    return true
  }

  get invocation(): SorobanAuthorizedInvocation {
    return invocationOf(this.root)
  }

  snapshot(): NodeSnapshot {
    return snapshotOf(this.root)
  }

  rollback(snapshot: NodeSnapshot): void {
    restore(this.root, snapshot)
    if (!this.root.used) {
      this.#rootFrame = undefined
      this.#done = false
    }
  }
}
