//! Loops of a function, and bytes that each loop processes per iteration.
//!
//! A loop is a natural loop: its head dominates a block that jumps back to the head. The loop consists of the head and
//! of all blocks from which the jumping block can be reached without passing the head.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use petgraph::Direction;
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Loop {
    pub head: u64,
    /// Instructions in order of address, with inner loops.
    pub instructions: Vec<Instruction>,
    /// Array bytes read per iteration. Arrays are memory outside of the stack whose addresses advance with every
    /// iteration.
    pub read: usize,
    /// Array bytes written per iteration.
    pub written: usize,
}

impl Loop {
    /// Array bytes read and written per iteration.
    pub fn moved(&self) -> usize {
        self.read + self.written
    }
}

/// Loop with most of the run time. Among the loops with the most bytes per iteration, it is the shortest. So an
/// unrolled vector loop precedes its remainder loops.
pub fn hot(loops: &[Loop]) -> Option<&Loop> {
    loops.iter().max_by_key(|one| (one.moved(), std::cmp::Reverse(one.instructions.len())))
}

/// Loops of a function, by address of the head.
pub fn loops(instructions: &[Instruction]) -> Vec<Loop> {
    let graph = blocks(instructions);
    let Some(entry) = graph.node_indices().next() else { return Vec::new() };
    let dominators = simple_fast(&graph, entry);
    let dominates = |head, block| dominators.dominators(block).is_some_and(|mut all| all.any(|d| d == head));
    let mut bodies: BTreeMap<NodeIndex, BTreeSet<NodeIndex>> = BTreeMap::new();
    for edge in graph.edge_references() {
        let (back, head) = (edge.source(), edge.target());
        if dominates(head, back) {
            bodies.entry(head).or_default().extend(body(&graph, head, back));
        }
    }
    let one = |(head, body): (NodeIndex, BTreeSet<NodeIndex>)| {
        let inside: Vec<Instruction> =
            body.iter().flat_map(|block| &instructions[graph[*block].clone()]).copied().collect();
        let [read, written] = moved(&inside);
        Loop { head: instructions[graph[head].start].ip(), instructions: inside, read, written }
    };
    bodies.into_iter().map(one).collect()
}

/// Blocks from which `back` can be reached without `head`.
fn body(graph: &Graph, head: NodeIndex, back: NodeIndex) -> BTreeSet<NodeIndex> {
    let mut body = BTreeSet::from([head]);
    let mut open = vec![back];
    while let Some(block) = open.pop() {
        if body.insert(block) {
            open.extend(graph.neighbors_directed(block, Direction::Incoming));
        }
    }
    body
}

/// Control flow between blocks; a block is a range of instructions.
type Graph = DiGraph<Range<usize>, ()>;

/// Blocks of a function, the entry first.
fn blocks(all: &[Instruction]) -> Graph {
    let index: HashMap<u64, usize> = all.iter().enumerate().map(|(i, one)| (one.ip(), i)).collect();
    let target = |one: &Instruction| if jumps(one) { index.get(&one.near_branch_target()).copied() } else { None };
    let mut firsts = BTreeSet::from([0, all.len()]);
    for (i, one) in all.iter().enumerate().filter(|(_, one)| jumps(one) || !falls_through(one)) {
        firsts.extend([i + 1].into_iter().chain(target(one)));
    }
    let firsts: Vec<usize> = firsts.into_iter().collect();
    let mut graph = Graph::new();
    let nodes: HashMap<usize, NodeIndex> =
        firsts.windows(2).map(|ends| (ends[0], graph.add_node(ends[0]..ends[1]))).collect();
    let mut jump_tables = Vec::new();
    for ends in firsts.windows(2) {
        let (node, last) = (nodes[&ends[0]], &all[ends[1] - 1]);
        let next = if falls_through(last) { Some(ends[1]) } else { None };
        for to in next.into_iter().chain(target(last)).filter_map(|first| nodes.get(&first)) {
            graph.update_edge(node, *to, ());
        }
        if last.flow_control() == FlowControl::IndirectBranch {
            jump_tables.push(node);
        }
    }
    // A jump table leads to all blocks that are not reached otherwise.
    let unreached: Vec<NodeIndex> = graph.externals(Direction::Incoming).filter(|node| node.index() != 0).collect();
    for (&from, &to) in jump_tables.iter().flat_map(|from| unreached.iter().map(move |to| (from, to))) {
        graph.update_edge(from, to, ());
    }
    graph
}

/// True for a conditional or unconditional jump to a near target.
fn jumps(one: &Instruction) -> bool {
    matches!(one.flow_control(), FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch)
}

fn falls_through(one: &Instruction) -> bool {
    use FlowControl::*;
    !matches!(one.flow_control(), UnconditionalBranch | IndirectBranch | Return | Exception)
}

/// Memory operand `base + scale * index + first`.
#[derive(Clone, Copy)]
struct Address {
    base: Register,
    index: Register,
    scale: u32,
    first: u64,
}

fn written(factory: &mut InstructionInfoFactory, one: &Instruction) -> Vec<Register> {
    use OpAccess::*;
    let used = factory.info(one).used_registers().iter();
    let used = used.filter(|used| !matches!(used.access(), Read | CondRead | NoMemAccess | None));
    used.map(|used| used.register().full_register()).collect()
}

/// Numbers of distinct array bytes read and written per iteration.
fn moved(instructions: &[Instruction]) -> [usize; 2] {
    let mut factory = InstructionInfoFactory::new();
    let steps = steps(instructions, &mut factory);
    let step = |register: Register| steps.get(&register.full_register()).copied().unwrap_or(0);
    let mut bytes = [(); 2].map(|()| BTreeSet::new());
    // Registers with addresses that are computed in the iteration.
    let mut computed: HashMap<Register, Address> = HashMap::new();
    for one in instructions {
        for memory in factory.info(one).used_memory() {
            let address = Address {
                base: memory.base(),
                index: memory.index(),
                scale: memory.scale(),
                first: memory.displacement(),
            };
            let address = match computed.get(&address.base.full_register()) {
                Some(of) if address.index == Register::None => {
                    Address { first: of.first.wrapping_add(address.first), ..*of }
                }
                _ => address,
            };
            let Address { base, index, scale, first } = address;
            if base.full_register() == Register::RSP || step(base) + step(index) * scale as i64 == 0 {
                continue;
            }
            use OpAccess::*;
            let reads = matches!(memory.access(), Read | CondRead | ReadWrite | ReadCondWrite);
            let writes = matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite);
            for byte in (0..memory.memory_size().size() as u64).map(|i| first.wrapping_add(i)) {
                for (bytes, _) in bytes.iter_mut().zip([reads, writes]).filter(|(_, is)| *is) {
                    bytes.insert((base as u32, index as u32, scale, byte));
                }
            }
        }
        let moved_on = added(one).and_then(|step| {
            let to = one.op0_register().full_register();
            let of = computed.get(&to)?;
            Some((to, Address { first: of.first.wrapping_add_signed(step), ..*of }))
        });
        for register in written(&mut factory, one) {
            computed.remove(&register);
        }
        computed.extend(moved_on);
        let (to, from) = (one.op0_register().full_register(), [one.memory_base(), one.memory_index()]);
        if one.mnemonic() == Mnemonic::Lea && from.iter().all(|from| from.full_register() != to) {
            let (scale, first) = (one.memory_index_scale(), one.memory_displacement64());
            computed.insert(to, Address { base: from[0], index: from[1], scale, first });
        }
    }
    bytes.map(|bytes| bytes.len())
}

/// Growth of each register per iteration. Only for registers that are added to, or computed from such registers.
fn steps(instructions: &[Instruction], factory: &mut InstructionInfoFactory) -> HashMap<Register, i64> {
    let mut writes: HashMap<Register, Vec<&Instruction>> = HashMap::new();
    for one in instructions {
        for register in written(factory, one) {
            writes.entry(register).or_default().push(one);
        }
    }
    let sum = |all: &Vec<&Instruction>| all.iter().map(|one| added(one)).sum::<Option<i64>>();
    let counters: HashMap<Register, i64> = writes.iter().filter_map(|(r, all)| Some((*r, sum(all)?))).collect();
    let step = |r: Register| match (counters.get(&r.full_register()), writes.contains_key(&r.full_register())) {
        (Some(step), _) => Some(*step),
        (None, written) => (!written).then_some(0),
    };
    let computed = writes.iter().filter_map(|(r, all)| match all[..] {
        [one] if one.mnemonic() == Mnemonic::Lea => {
            let (base, index) = (step(one.memory_base())?, step(one.memory_index())?);
            Some((*r, base + index * one.memory_index_scale() as i64))
        }
        _ => None,
    });
    let computed: HashMap<Register, i64> = computed.collect();
    computed.into_iter().chain(counters).collect()
}

/// Amount that an instruction adds to its destination, if it does nothing else.
fn added(one: &Instruction) -> Option<i64> {
    let immediate = || match one.op1_kind() {
        OpKind::Register | OpKind::Memory => None,
        _ => Some(one.immediate(1) as i64),
    };
    match one.mnemonic() {
        Mnemonic::Add => immediate(),
        Mnemonic::Sub => immediate().map(i64::wrapping_neg),
        Mnemonic::Inc => Some(1),
        Mnemonic::Dec => Some(-1),
        Mnemonic::Lea if one.memory_base() == one.op0_register() && one.memory_index() == Register::None => {
            Some(one.memory_displacement64() as i64)
        }
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::asm::instructions::decode;
    use crate::asm::level::Level;
    use iced_x86::IcedError;
    use iced_x86::code_asm::*;

    pub type Write = fn(&mut CodeAssembler, Level) -> Result<(), IcedError>;

    /// Adds 1 to 32-bit elements: an unrolled vector loop, then a loop over the rest.
    pub const VECTOR_COPY: Write = |a, level| {
        let mut vectors = a.create_label();
        a.set_label(&mut vectors)?;
        let bytes = level.vector_bits() as i32 / 8;
        for at in [0, bytes] {
            match level {
                Level::Baseline => {
                    a.movdqu(xmm0, xmmword_ptr(rdi + rax * 4 + at))?;
                    a.paddd(xmm0, xmm1)?;
                    a.movdqu(xmmword_ptr(rsi + rax * 4 + at), xmm0)?;
                }
                Level::Avx2 => {
                    a.vpaddd(ymm0, ymm1, ymmword_ptr(rdi + rax * 4 + at))?;
                    a.vmovdqu(ymmword_ptr(rsi + rax * 4 + at), ymm0)?;
                }
                Level::Avx512 => {
                    a.vpaddd(zmm0, zmm1, zmmword_ptr(rdi + rax * 4 + at))?;
                    a.vmovdqu32(zmmword_ptr(rsi + rax * 4 + at), zmm0)?;
                }
            }
        }
        a.add(rax, 2 * bytes / 4)?;
        a.cmp(rax, rcx)?;
        a.jne(vectors)?;
        SCALAR_COPY(a, level)
    };

    /// Adds 1 to 32-bit elements, one at a time.
    pub const SCALAR_COPY: Write = |a, _| {
        let mut rest = a.create_label();
        a.set_label(&mut rest)?;
        a.mov(r8d, dword_ptr(rdi + rax * 4))?;
        a.inc(r8d)?;
        a.mov(dword_ptr(rsi + rax * 4), r8d)?;
        a.inc(rax)?;
        a.cmp(rax, rdx)?;
        a.jne(rest)?;
        a.vpxor(xmm0, xmm0, xmm0)?;
        a.ret()
    };

    /// Assembles machine code at address 0x1000.
    pub fn assembled(write: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Vec<u8> {
        let mut assembler = CodeAssembler::new(64).unwrap();
        write(&mut assembler).unwrap();
        assembler.assemble(0x1000).unwrap()
    }

    pub fn loops_of(write: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Vec<Loop> {
        loops(&decode(&assembled(write), 0x1000))
    }

    #[test]
    fn straight_code_has_none() {
        assert!(loops_of(|a| a.ret()).is_empty());
        assert!(loops(&[]).is_empty());
    }

    #[test]
    fn the_unrolled_vector_loop_is_hot_and_not_the_one_over_the_rest() {
        for level in Level::ALL {
            let found = loops_of(|a| VECTOR_COPY(a, level));
            let bytes = 2 * level.vector_bits() as usize / 8;
            let moved: Vec<_> = found.iter().map(|one| (one.read, one.written)).collect();
            assert_eq!(moved, [(bytes, bytes), (4, 4)], "{level:?}");
            assert_eq!(hot(&found).unwrap().head, 0x1000);
        }
    }

    fn moved(body: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> (usize, usize) {
        let found = loops_of(|a| {
            let mut head = a.create_label();
            a.set_label(&mut head)?;
            body(a)?;
            a.jne(head)
        });
        (found[0].read, found[0].written)
    }

    #[test]
    fn strides_of_pointers_counters_and_both() {
        let with = |step: fn(&mut CodeAssembler) -> Result<(), IcedError>| {
            moved(|a| {
                a.mov(al, byte_ptr(rdi))?;
                a.mov(byte_ptr(rsi + rbx * 2), al)?;
                step(a)
            })
        };
        assert_eq!(with(|a| a.add(rdi, 64)), (1, 0));
        assert_eq!(with(|a| a.sub(rbx, -128)), (0, 1));
        assert_eq!(with(|a| a.lea(rdi, ptr(rdi + 8))), (1, 0));
        assert_eq!(with(|a| a.dec(rbx)), (0, 1));
        assert_eq!(with(|a| a.mov(rdi, rcx)), (0, 0), "set to something that may not move");
        assert_eq!(with(|a| a.lea(rdi, ptr(rcx + rdx))), (0, 0), "computed from what does not move");
        assert_eq!(with(|a| a.inc(rax)), (0, 0), "not part of an address");
    }

    #[test]
    fn what_an_iteration_moves() {
        type Row = (&'static str, (usize, usize), fn(&mut CodeAssembler) -> Result<(), IcedError>);
        let rows: [Row; 5] = [
            ("an address may be computed from a counter", (0, 64), |a| {
                a.lea(rsi, ptr(rdx + rax * 2))?;
                a.vmovntdq(zmmword_ptr(rsi), zmm0)?;
                a.add(rax, 32)
            }),
            ("a register may hold one address after another", (0, 64), |a| {
                for half in [0, 32] {
                    a.lea(rsi, ptr(rdx + rax + half))?;
                    a.vmovntdq(ymmword_ptr(rsi), ymm0)?;
                }
                a.add(rax, 64)
            }),
            ("a computed address may be moved on", (0, 64), |a| {
                a.lea(rsi, ptr(rdx + rax))?;
                a.vmovntdq(ymmword_ptr(rsi), ymm0)?;
                a.add(rsi, 32)?;
                a.vmovntdq(ymmword_ptr(rsi), ymm0)?;
                a.add(rax, 64)
            }),
            ("spills and tables are no arrays", (1, 0), |a| {
                a.movzx(eax, byte_ptr(rdi + rcx))?;
                a.mov(edx, dword_ptr(r8 + rax * 4))?;
                a.mov(qword_ptr(rsp + rcx + 8), rdx)?;
                a.add(rdx, qword_ptr(rsi))?;
                a.inc(rcx)
            }),
            ("bytes that are read twice count once", (16, 0), |a| {
                a.movdqu(xmm0, xmmword_ptr(rdi + rcx))?;
                a.movq(xmm1, qword_ptr(rdi + rcx + 8))?;
                a.add(rcx, 16)
            }),
        ];
        for (rule, bytes, body) in rows {
            assert_eq!(moved(body), bytes, "{rule}");
        }
    }

    #[test]
    fn a_loop_within_a_loop_is_part_of_it() {
        let found = loops_of(|a| {
            let (mut outer, mut inner) = (a.create_label(), a.create_label());
            a.set_label(&mut outer)?;
            a.mov(eax, dword_ptr(rdi))?;
            a.set_label(&mut inner)?;
            a.dec(eax)?;
            a.jne(inner)?;
            a.add(rdi, 4)?;
            a.dec(ecx)?;
            a.jne(outer)?;
            a.ret()
        });
        let lengths: Vec<usize> = found.iter().map(|one| one.instructions.len()).collect();
        assert_eq!(lengths, [6, 2]);
    }

    #[test]
    fn a_block_that_was_put_elsewhere_belongs_to_its_loop() {
        let found = loops_of(|a| {
            let (mut head, mut back, mut away) = (a.create_label(), a.create_label(), a.create_label());
            a.set_label(&mut head)?;
            a.cmp(byte_ptr(rdi), 0)?;
            a.je(away)?;
            a.set_label(&mut back)?;
            a.inc(rdi)?;
            a.dec(ecx)?;
            a.jne(head)?;
            a.ret()?;
            a.set_label(&mut away)?;
            a.call(rax)?;
            a.jmp(back)
        });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].instructions.len(), 7);
        assert!(found[0].instructions.iter().any(crate::asm::instructions::is_call));
    }

    #[test]
    fn blocks_behind_a_jump_table_are_found() {
        let found = loops_of(|a| {
            let mut head = a.create_label();
            a.jmp(qword_ptr(rdi + rax * 8))?;
            a.nop()?;
            a.set_label(&mut head)?;
            a.add(rsi, 1)?;
            a.jne(head)?;
            a.ret()
        });
        assert_eq!(found.len(), 1);
    }
}
