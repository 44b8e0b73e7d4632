"""A linear model that learns with weights of fp8: the gradient passes as if nothing had been rounded."""

import torch
import truecast as tc

torch.manual_seed(1)
inputs = torch.randn(256, 8)
targets = inputs @ torch.linspace(-1, 1, 8)

weights = torch.zeros(8, requires_grad=True)
optimizer = torch.optim.SGD([weights], lr=0.1)
loss = torch.inf
for step in range(200):
    rounded = tc.torch.round_trip(weights, "f8e4m3fn")
    loss = ((inputs @ rounded - targets) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3}: loss {float(loss):.4f}")

final = tc.torch.cast(weights, "f8e4m3fn")
print(final)
assert loss < 0.01
